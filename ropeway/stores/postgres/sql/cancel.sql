-- Cancels jobs that are not yet final, running ones included.
-- Takes the queue, ids, the reason (or null), the defaults of options, the instant, and whether it may wake listeners.
-- Returns two letters for each (the verdict and the state before), and the wakes as `wake` says them.
CREATE OR REPLACE FUNCTION ropeway.cancel(
    queue_name text, ids text[], reason text, defaults bigint[], at bigint DEFAULT NULL,
    may_wake boolean DEFAULT NULL, OUT letters text, OUT wakes text[]
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
    prev ropeway.state;
    keep record;
    cancelled text[];
    at_once text[];
    keeps bigint;
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
        END IF;
        prev := job.state;
        letters := letters || CASE WHEN prev IN ('completed', 'failed') THEN 'r' ELSE 'd' END || ropeway.letter(prev);
        CONTINUE WHEN prev IN ('completed', 'failed', 'cancelled');
        IF prev = 'active' THEN
            PERFORM ropeway.revoke(queue.id, job.id, job.token, 'cancelled', instant);
            revokes := true;
        END IF;
        PERFORM ropeway.leave(job);
        keep := ropeway.stored_options(job.options, defaults);
        job.state := 'cancelled';
        job.finished_at := instant;
        job.expires_at := ropeway.expiry(instant, keep.age, keep.count);
        job.reason := cancel.reason;
        -- The worker still runs the handler: without its token a late result is refused.
        job.token := NULL;
        PERFORM ropeway.finish(job);
        IF keep.age = 0 OR keep.count = 0 THEN
            at_once := at_once || job.id;
        ELSE
            keeps := least(keeps, keep.count);
        END IF;
        cancelled := cancelled || ('["' || job.id || '",{"prev":"' || prev || '"}]');
        s := ropeway.moved(s, prev, 'cancelled');
    END LOOP;
    IF cancelled IS NOT NULL THEN
        s := ropeway.told(
            s,
            ropeway.entry(
                'cancel', instant, 'cancelled', array_to_string(cancelled, ','),
                '{"reason":' || to_json(reason) || '}'
            ),
            cardinality(cancelled)
        );
        s.metric_cancelled := cardinality(cancelled);
        s := ropeway.retain(s, queue.id, 'cancelled', at_once, keeps, cardinality(cancelled), instant);
    END IF;
    wakes := ropeway.write(s, queue.id, instant, revokes AND queue.max_active IS NOT NULL, may_wake);
    IF revokes THEN
        PERFORM ropeway.wake(queue.id, 'revoked', true);
    END IF;
END
$$;
