-- Writes an event of the application's own, and now and then folds and trims: a queue that has events and no worker is
-- ticked by nobody.
-- Takes the queue, which need not be there, the event's name (json) and data (json, an object), how many events are kept, once
-- in how many calls it trims, the instant, and whether it may wake listeners.
-- Returns the wakes as `wake` says them.
CREATE OR REPLACE FUNCTION ropeway.publish(
    queue_name text, event text, data text, events_kept integer, once_in integer, at bigint DEFAULT NULL,
    may_wake boolean DEFAULT NULL, OUT wakes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer := ropeway.queue_id(queue_name);
    newest bigint;
BEGIN
    s := ropeway.told(
        s, ropeway.entry('{{PUBLISHED}}', instant, NULL, NULL, '{"name":' || event || ',"data":' || data || '}'), 1
    );
    wakes := ropeway.write(s, queue_id, instant, false, may_wake);
    IF random() * once_in < 1 AND pg_try_advisory_xact_lock(hashtext('ropeway.fold'), queue_id) THEN
        PERFORM ropeway.fold(queue_id);
        SELECT t.events INTO newest FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
        PERFORM ropeway.forget_steps(queue_id, newest - events_kept, {{BATCH}});
    END IF;
END
$$;
