-- Forgets the oldest steps of a queue while more events remain than are to be kept, but never the newest step.
-- Takes the queue and how many events to keep.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.trim_events(queue_name text, events_kept bigint) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    queue_id integer;
    newest bigint;
    last_gone bigint;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    -- Also if nothing is to be folded: only who has the fold's lock forgets steps.
    LOOP
        EXIT WHEN ropeway.fold(queue_id) < 5000;
    END LOOP;
    SELECT t.events INTO newest FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
    last_gone := newest - greatest(events_kept, 1);
    -- All of the step that has the first event to keep goes if some of it are too many, unless it is the newest.
    SELECT least(CASE WHEN step.number - step.events < last_gone THEN step.number ELSE last_gone END, newest - 1)
    INTO last_gone
    FROM ropeway.step
    WHERE step.queue = queue_id AND step.number IS NOT NULL AND step.number > last_gone AND step.events > 0
    ORDER BY step.number
    LIMIT 1;
    PERFORM ropeway.forget_steps(queue_id, last_gone, NULL);
END
$$;
