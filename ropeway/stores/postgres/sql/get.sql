-- Reads jobs.
-- Takes the queue and ids.
-- Returns a row for each that exists, with the fields of a record in their order.
CREATE OR REPLACE FUNCTION ropeway.get(queue_name text, ids text[]) RETURNS TABLE (
    queue text, id text, name text, data text, options text, state text, priority integer, ord bigint,
    created_at bigint, attempts_made integer, attempts_started integer, stalled_count integer, due_at bigint,
    token text, worker text, started_at bigint, renewed_at bigint, lock_until bigint, finished_at bigint,
    expires_at bigint, reason text, progress text, result text, tags text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN QUERY
    SELECT
        queue_name, p.id, p.name, p.data, p.options, p.state::text, p.priority, p.ord,
        p.created_at, p.attempts_made, p.attempts_started, p.stalled_count, p.due_at,
        p.token, p.worker, p.started_at, p.renewed_at, p.lock_until, p.finished_at,
        p.expires_at, p.reason, p.progress, p.result, p.tags
    FROM (SELECT DISTINCT unnest(ids) AS id) AS given
    -- One by one, whatever is known of the tables: see `find`.
    CROSS JOIN LATERAL (
        SELECT place.* FROM ropeway.place
        WHERE place.queue = (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name) AND place.id = given.id
        OFFSET 0
    ) AS p;
END
$$;
