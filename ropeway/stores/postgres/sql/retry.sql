-- Finished jobs wait again.
-- Takes the queue, ids, whether their counters begin anew, the instant, and whether it may wake listeners.
-- Returns two letters for each (the verdict and the state before), and the wakes as `wake` says them.
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
    job ropeway.place;
    retried text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.hold(queue_id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.place AS p WHERE p.queue = queue_id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state NOT IN ({{FINAL}}) THEN
            letters := letters || 'r' || ropeway.letter(job.state);
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.letter(job.state);
        PERFORM ropeway.leave(job);
        s := ropeway.moved(s, job.state, 'waiting');
        job.token := NULL;
        job.reason := NULL;
        job.progress := NULL;
        IF resets THEN
            job.attempts_made := 0;
            job.attempts_started := 0;
            job.stalled_count := 0;
        END IF;
        PERFORM ropeway.stand_in_line(job);
        retried := retried || ('["' || job.id || '",null]');
    END LOOP;
    IF retried IS NOT NULL THEN
        s := ropeway.told(
            s, ropeway.entry('{{RETRY_BY_HAND}}', instant, 'waiting', array_to_string(retried, ',')), cardinality(retried)
        );
    END IF;
    wakes := ropeway.write(s, queue_id, instant, retried IS NOT NULL, may_wake);
END
$$;
