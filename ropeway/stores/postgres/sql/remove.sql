-- Removes jobs and everything about them.
-- Takes the queue, ids, whether active ones go too, the instant, and whether it may wake listeners.
-- Returns two letters for each (the verdict and the state before), and the wakes as `wake` says them.
CREATE OR REPLACE FUNCTION ropeway.remove(
    queue_name text, ids text[], forces boolean, at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
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
    queue ropeway.queue;
    held text[];
    job ropeway.place;
    removed text[];
    revokes boolean := false;
BEGIN
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.hold(queue.id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.place AS p WHERE p.queue = queue.id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state = 'active' AND NOT forces THEN
            letters := letters || 'ra';
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.letter(job.state);
        PERFORM ropeway.drop_job(job, instant);
        revokes := revokes OR job.state = 'active';
        s := ropeway.moved(s, job.state, NULL);
        removed := removed || ('["' || job.id || '",{"prev":"' || job.state || '"}]');
    END LOOP;
    IF removed IS NOT NULL THEN
        s := ropeway.told(
            s, ropeway.entry('remove', instant, NULL, array_to_string(removed, ',')), cardinality(removed)
        );
        s.metric_removed := cardinality(removed);
    END IF;
    wakes := ropeway.write(s, queue.id, instant, revokes AND queue.max_active IS NOT NULL, may_wake);
    IF revokes THEN
        PERFORM ropeway.wake(queue.id, 'revoked', true);
    END IF;
END
$$;
