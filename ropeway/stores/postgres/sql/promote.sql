-- Moves delayed jobs to waiting before they are due.
-- Takes the queue, ids, the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state before), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.promote(
    queue_name text, ids text[], at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer;
    held text[];
    job ropeway.whole_job;
    promoted text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue_id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state <> 'delayed' THEN
            letters := letters || 'r' || ropeway.state_letter(job.state);
            CONTINUE;
        END IF;
        letters := letters || 'dd';
        PERFORM ropeway.delete_state(job);
        PERFORM ropeway.insert_waiting(job);
        s := ropeway.count_move(s, 'delayed', 'waiting');
        promoted := promoted || ('["' || job.id || '",null]');
    END LOOP;
    IF promoted IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{PROMOTE}}', instant, 'waiting', array_to_string(promoted, ',')), cardinality(promoted)
        );
    END IF;
    wakes := ropeway.write_step(s, queue_id, instant, promoted IS NOT NULL, may_wake);
END
$$;
