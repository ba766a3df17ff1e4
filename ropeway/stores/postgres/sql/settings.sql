-- Reads the settings of a queue.
-- Takes the queue.
-- Returns no row if there is no such queue.
CREATE OR REPLACE FUNCTION ropeway.settings(queue_name text)
RETURNS TABLE (
    is_paused boolean, paused_names text[], max_active bigint, stale_after bigint, delete_after bigint, stale_until bigint,
    callbacks text[]
)
LANGUAGE sql STABLE AS $$
    SELECT q.is_paused, q.paused_names, q.max_active, q.stale_after, q.delete_after, q.stale_until, q.callbacks
    FROM ropeway.queue AS q WHERE q.name = queue_name
$$;
