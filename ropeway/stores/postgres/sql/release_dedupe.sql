-- Frees a dedupe key, whatever holds it, and lets the job go on that waits for its holder.
-- Takes the queue, the key, the instant, and whether it may notify.
-- Returns whether it was held, and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.release_dedupe(
    queue_name text, wanted text, at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL, OUT was_held boolean,
    OUT wakes text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    queue_id integer;
    hold ropeway.held_key;
    after record;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    PERFORM ropeway.lock_keys(queue_id, ARRAY[wanted]);
    DELETE FROM ropeway.held_key AS k WHERE k.queue = queue_id AND k.key = wanted RETURNING k.* INTO hold;
    was_held := FOUND AND (hold.until <= instant) IS NOT TRUE;
    IF hold.next IS NOT NULL THEN
        after := ropeway.start_next(ARRAY[queue_id], ARRAY[NULL]::ropeway.step[], queue_id, hold.next, instant);
        wakes := ropeway.write_step(after.steps[1], queue_id, instant, true, may_wake);
    END IF;
END
$$;
