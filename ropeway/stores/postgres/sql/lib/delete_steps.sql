-- Deletes folded steps of a queue, the oldest first. The caller must have the fold's lock.
-- Takes the queue, the number of the last step to delete, and how many at most (null: all).
-- Returns how many were deleted.
CREATE OR REPLACE FUNCTION ropeway.delete_steps(queue_id integer, last_gone bigint, most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    amount integer;
BEGIN
    DELETE FROM ropeway.step WHERE step.ctid = ANY (ARRAY(
        SELECT old.ctid FROM ropeway.step AS old
        WHERE old.queue = queue_id AND old.number IS NOT NULL AND old.number <= last_gone
        ORDER BY old.number
        LIMIT most
    ));
    GET DIAGNOSTICS amount = ROW_COUNT;
    IF amount > 0 THEN
        UPDATE ropeway.tally AS t SET events_from = NULL WHERE t.ctid = (
            SELECT last.ctid FROM ropeway.tally AS last WHERE last.queue = queue_id ORDER BY last.fold DESC LIMIT 1
        ) AND t.events_from IS NOT NULL;
    END IF;
    RETURN amount;
END
$$;
