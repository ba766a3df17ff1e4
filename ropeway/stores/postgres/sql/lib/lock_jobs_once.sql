-- Locks jobs in the order that all calls keep to: table by table, and by id in each.
-- Takes the queue and ids.
-- Returns the ids of those that exist, or null if another call moved one of them to a table that was already passed.
CREATE OR REPLACE FUNCTION ropeway.lock_jobs_once(queue_id integer, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    wanted CONSTANT text[] := ARRAY(SELECT DISTINCT given.id COLLATE "C" FROM unnest(ids) AS given (id) ORDER BY 1);
    held bigint;
    amount bigint;
    known text[];
BEGIN
    -- LATERAL: each by its key and in order, whatever the statistics of the tables.
    PERFORM FROM unnest(wanted) AS given (id)
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = given.id FOR UPDATE
    ) AS held;
    GET DIAGNOSTICS held = ROW_COUNT;
    PERFORM FROM unnest(wanted) AS given (id)
    CROSS JOIN LATERAL (
        SELECT j.priority, j.ord FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = given.id OFFSET 0
    ) AS job
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.waiting AS w
        WHERE w.queue = queue_id AND w.priority = job.priority AND w.ord = job.ord
        FOR UPDATE
    ) AS held;
    GET DIAGNOSTICS amount = ROW_COUNT;
    held := held + amount;
    PERFORM FROM unnest(wanted) AS given (id)
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.later AS l WHERE l.queue = queue_id AND l.id = given.id FOR UPDATE
    ) AS held;
    GET DIAGNOSTICS amount = ROW_COUNT;
    held := held + amount;
    PERFORM FROM unnest(wanted) AS given (id)
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.finished AS f WHERE f.queue = queue_id AND f.id = given.id FOR UPDATE
    ) AS held;
    GET DIAGNOSTICS amount = ROW_COUNT;
    held := held + amount;
    known := ARRAY(
        SELECT job.id FROM unnest(wanted) AS given (id)
        CROSS JOIN LATERAL (
            SELECT j.id FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = given.id OFFSET 0
        ) AS job
    );
    RETURN CASE WHEN held = cardinality(known) THEN known END;
END
$$;
