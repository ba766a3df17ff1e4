-- Writes the step of a call, as its last statement, and notifies listeners.
-- Takes the step, the queue, the instant, whether a claim may find more jobs now, and whether it may notify.
-- Returns the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.write_step(
    s ropeway.step, queue_id integer, instant bigint, has_new_work boolean, may_wake boolean
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    wakes text[];
BEGIN
    IF s.events > 0 THEN
        INSERT INTO ropeway.step (
            at, queue, events, waiting, waiting_children, delayed, active, completed, failed, cancelled,
            metric_added, metric_completed, metric_failed, metric_retried, metric_stalled, metric_cancelled,
            metric_removed, entries
        )
        VALUES (
            instant, queue_id, s.events, nullif(s.waiting, 0), nullif(s.waiting_children, 0), nullif(s.delayed, 0),
            nullif(s.active, 0), nullif(s.completed, 0), nullif(s.failed, 0), nullif(s.cancelled, 0),
            nullif(s.metric_added, 0), nullif(s.metric_completed, 0), nullif(s.metric_failed, 0),
            nullif(s.metric_retried, 0), nullif(s.metric_stalled, 0), nullif(s.metric_cancelled, 0),
            nullif(s.metric_removed, 0), s.entries
        );
        wakes := array_append(wakes, ropeway.wake(queue_id, 'events', may_wake));
    END IF;
    -- Or parents may have been released, which are in line ahead of their children.
    IF has_new_work OR s.waiting_children < 0 THEN
        wakes := array_append(wakes, ropeway.wake(queue_id, 'jobs', may_wake, coalesce(s.waiting_children < 0, false)));
    END IF;
    RETURN array_remove(wakes, NULL);
END
$$;
