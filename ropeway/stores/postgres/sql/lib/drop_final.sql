-- Removes finished jobs.
-- Takes the step, the queue, the ctids of their rows in `finished`, which must be locked, and the instant.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.drop_final(INOUT s ropeway.step, queue_id integer, ctids tid[], instant bigint)
LANGUAGE plpgsql AS $$
DECLARE
    ids text[];
    states ropeway.state[];
    pasts bigint[];
    dropped record;
BEGIN
    WITH gone AS (
        DELETE FROM ropeway.finished AS f WHERE f.ctid = ANY (ctids)
        RETURNING f.id, f.seq, f.state, f.finished_at,
            f.attempts_made > 0 OR f.stalled_count > 0 OR f.attempts_started > 1 OR f.logged > 0 AS has_past
    )
    SELECT
        array_agg(gone.id), array_agg(gone.state), array_agg(gone.seq) FILTER (WHERE gone.has_past),
        coalesce(s.completed, 0) - count(*) FILTER (WHERE gone.state = 'completed'),
        coalesce(s.failed, 0) - count(*) FILTER (WHERE gone.state = 'failed'),
        coalesce(s.cancelled, 0) - count(*) FILTER (WHERE gone.state = 'cancelled')
    INTO ids, states, pasts, s.completed, s.failed, s.cancelled
    FROM (SELECT * FROM gone ORDER BY gone.finished_at, gone.seq) AS gone;
    dropped := ropeway.drop_jobs(s, queue_id, ids, states, pasts, instant);
    s := dropped.s;
END
$$;
