-- Removes finished jobs and everything about them.
-- Takes the step, the queue, where they lie in `finished` (locked), and the instant.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.drop_finished(INOUT s ropeway.step, queue_id integer, spots tid[], instant bigint)
LANGUAGE plpgsql AS $$
DECLARE
    ids text[];
    pasts bigint[];
    jobs text;
    completed integer;
    failed integer;
    cancelled integer;
BEGIN
    WITH gone AS (
        DELETE FROM ropeway.finished AS f WHERE f.ctid = ANY (spots)
        RETURNING f.id, f.seq, f.state, f.finished_at,
            f.attempts_made > 0 OR f.stalled_count > 0 OR f.attempts_started > 1 OR f.logged > 0 AS has_past
    )
    SELECT
        array_agg(gone.id), array_agg(gone.seq) FILTER (WHERE gone.has_past),
        string_agg('["' || gone.id || '",{"prev":"' || gone.state || '"}]', ',' ORDER BY gone.finished_at, gone.seq),
        count(*) FILTER (WHERE gone.state = 'completed'), count(*) FILTER (WHERE gone.state = 'failed'),
        count(*) FILTER (WHERE gone.state = 'cancelled')
    INTO ids, pasts, jobs, completed, failed, cancelled
    FROM gone;
    DELETE FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (ids);
    PERFORM ropeway.forget_past(pasts);
    s.completed := coalesce(s.completed, 0) - completed;
    s.failed := coalesce(s.failed, 0) - failed;
    s.cancelled := coalesce(s.cancelled, 0) - cancelled;
    s.metric_removed := coalesce(s.metric_removed, 0) + completed + failed + cancelled;
    IF jobs IS NOT NULL THEN
        s := ropeway.told(s, ropeway.entry('remove', instant, NULL, jobs), completed + failed + cancelled);
    END IF;
END
$$;
