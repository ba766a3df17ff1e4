-- Lists jobs that ended later than one instant and up to another.
-- Takes the queue, both instants, and how many jobs of each state at most (null: all).
-- Returns a row for each, in no order.
CREATE OR REPLACE FUNCTION ropeway.ended_between(queue_id integer, after bigint, last bigint, most integer)
RETURNS TABLE (state ropeway.state, finished_at bigint, seq bigint, id text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT kind.state, ended.finished_at, ended.seq, ended.id
    FROM unnest(ARRAY[{{FINAL}}]::ropeway.state[]) AS kind (state)
    -- Both indexes: those that are kept for ever have one of their own.
    CROSS JOIN LATERAL (
        (
            SELECT f.finished_at, f.seq, f.id FROM ropeway.finished AS f
            WHERE f.queue = queue_id AND f.state = kind.state AND f.expires_at IS NOT NULL
                AND f.finished_at > after AND f.finished_at <= last
            ORDER BY f.finished_at, f.seq
            LIMIT most
        )
        UNION ALL
        (
            SELECT f.finished_at, f.seq, f.id FROM ropeway.finished AS f
            WHERE f.queue = queue_id AND f.state = kind.state AND f.expires_at IS NULL
                AND f.finished_at > after AND f.finished_at <= last
            ORDER BY f.finished_at, f.seq
            LIMIT most
        )
        ORDER BY 1, 2
        LIMIT most
    ) AS ended;
END
$$;
