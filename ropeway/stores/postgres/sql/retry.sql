-- Moves finished jobs to waiting.
-- Takes the queue, ids, whether to reset their counters, the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state before), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.retry(
    queue_name text, ids text[], resets boolean, at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer;
    held text[];
    job ropeway.whole_job;
    retried text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue_id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state NOT IN ({{FINAL}}) THEN
            letters := letters || 'r' || ropeway.state_letter(job.state);
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.state_letter(job.state);
        PERFORM ropeway.delete_state(job);
        s := ropeway.count_move(s, job.state, 'waiting');
        job.token := NULL;
        job.reason := NULL;
        job.progress := NULL;
        IF resets THEN
            job.attempts_made := 0;
            job.attempts_started := 0;
            job.stalled_count := 0;
        END IF;
        PERFORM ropeway.insert_waiting(job);
        retried := retried || ('["' || job.id || '",null]');
    END LOOP;
    IF retried IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{RETRY_BY_HAND}}', instant, 'waiting', array_to_string(retried, ',')), cardinality(retried)
        );
    END IF;
    wakes := ropeway.write_step(s, queue_id, instant, retried IS NOT NULL, may_wake);
END
$$;
