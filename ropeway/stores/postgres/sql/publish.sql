-- Writes an event of the application. Now and then it also folds and trims: a queue without workers has no ticks.
-- Takes the queue, which is made if need be, the entry's detail (json), how many events are kept, one in how many calls
-- trims, the instant, and whether it may notify.
-- Returns the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.publish(
    queue_name text, detail text, events_kept integer, once_in integer, at bigint DEFAULT NULL,
    may_wake boolean DEFAULT NULL, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer := ropeway.queue_id(queue_name);
    newest bigint;
BEGIN
    s := ropeway.add_entry(s, ropeway.entry('{{PUBLISHED}}', instant, NULL, NULL, detail), 1);
    wakes := ropeway.write_step(s, queue_id, instant, false, may_wake);
    IF random() * once_in < 1 AND pg_try_advisory_xact_lock(hashtext('ropeway.fold'), queue_id) THEN
        PERFORM ropeway.fold(queue_id);
        SELECT t.events INTO newest FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
        PERFORM ropeway.delete_steps(queue_id, newest - events_kept, {{BATCH}});
    END IF;
END
$$;
