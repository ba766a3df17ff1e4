-- Lists the queues that have jobs, schedules or settings.
-- Takes nothing.
-- Returns their names in order.
CREATE OR REPLACE FUNCTION ropeway.queues() RETURNS text[]
LANGUAGE sql STABLE AS $$
    SELECT ARRAY(
        SELECT q.name FROM ropeway.queue AS q
        WHERE q.is_configured OR EXISTS (SELECT FROM ropeway.job AS j WHERE j.queue = q.id)
            OR EXISTS (SELECT FROM ropeway.schedule AS e WHERE e.queue = q.id)
        ORDER BY q.name
    )
$$;
