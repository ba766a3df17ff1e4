-- Deletes the oldest events of a queue. A step is deleted when all of its events are; of a step that stays in part,
-- readers skip the events up to `events_from`.
-- Takes the queue, how many events to keep (at least one), and the moves that are two events of each job.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.trim_events(queue_name text, events_kept bigint, double_moves text[])
RETURNS void
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}}
AS $$
DECLARE
    queue_id integer;
    newest bigint;
    last_gone bigint;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    -- Also if nothing is to be folded: `delete_steps` needs the fold's lock.
    LOOP
        EXIT WHEN ropeway.fold(queue_id) < {{FOLD_BATCH}};
    END LOOP;
    SELECT t.events INTO newest FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
    last_gone := newest - events_kept;
    IF events_kept = 1 AND ropeway.newest_entry(queue_id, newest) = ANY (double_moves) THEN
        -- What happened to one job last stays whole.
        last_gone := newest - 2;
    END IF;
    PERFORM ropeway.delete_steps(queue_id, last_gone, NULL);
    UPDATE ropeway.tally AS t SET events_from = -1 - last_gone WHERE t.ctid = (
        SELECT last.ctid FROM ropeway.tally AS last WHERE last.queue = queue_id ORDER BY last.fold DESC LIMIT 1
    ) AND last_gone > coalesce(CASE WHEN t.events_from < 0 THEN -1 - t.events_from ELSE t.events_from END, 0);
END
$$;
