-- Locks jobs in the one order that everybody keeps to: table by table, and by their ids in each.
-- Takes the queue and ids.
-- Returns the ids of those that are there, or null if one was moved by others meanwhile and stands where it was not seen.
CREATE OR REPLACE FUNCTION ropeway.hold_once(queue_id integer, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    held bigint;
    amount bigint;
    known text[];
BEGIN
    PERFORM FROM ropeway.active AS a
    WHERE a.queue = queue_id AND a.id = ANY (ids) ORDER BY a.id FOR UPDATE;
    GET DIAGNOSTICS held = ROW_COUNT;
    PERFORM FROM (
        SELECT j.priority, j.ord FROM ropeway.job AS j
        WHERE j.queue = queue_id AND j.id = ANY (ids) ORDER BY j.id
    ) AS job
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.waiting AS w
        WHERE w.queue = queue_id AND w.priority = job.priority AND w.ord = job.ord
        FOR UPDATE
    ) AS held;
    GET DIAGNOSTICS amount = ROW_COUNT;
    held := held + amount;
    PERFORM FROM ropeway.later AS l
    WHERE l.queue = queue_id AND l.id = ANY (ids) ORDER BY l.id FOR UPDATE;
    GET DIAGNOSTICS amount = ROW_COUNT;
    held := held + amount;
    PERFORM FROM ropeway.finished AS f
    WHERE f.queue = queue_id AND f.id = ANY (ids) ORDER BY f.id FOR UPDATE;
    GET DIAGNOSTICS amount = ROW_COUNT;
    held := held + amount;
    known := ARRAY(SELECT j.id FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (ids));
    RETURN CASE WHEN held = cardinality(known) THEN known END;
END
$$;
