-- Reads the metrics of each minute: those of the table, and of steps that are not folded yet.
-- Takes the queue, and the first instant.
-- Returns a row for each minute in which something happened, the oldest first.
CREATE OR REPLACE FUNCTION ropeway.metrics(queue_name text, since bigint) RETURNS TABLE (
    minute bigint, added bigint, completed bigint, failed bigint, retried bigint, stalled bigint, cancelled bigint,
    removed bigint
)
LANGUAGE sql STABLE AS $$
    SELECT
        m.minute, sum(m.added)::bigint, sum(m.completed)::bigint, sum(m.failed)::bigint, sum(m.retried)::bigint,
        sum(m.stalled)::bigint, sum(m.cancelled)::bigint, sum(m.removed)::bigint
    FROM ropeway.queue AS q
    CROSS JOIN LATERAL (
        SELECT
            known.minute, known.added, known.completed, known.failed, known.retried, known.stalled, known.cancelled,
            known.removed
        FROM ropeway.metric AS known WHERE known.queue = q.id
        UNION ALL
        SELECT
            step.at - step.at % {{MINUTE}}, coalesce(step.metric_added, 0), coalesce(step.metric_completed, 0),
            coalesce(step.metric_failed, 0), coalesce(step.metric_retried, 0), coalesce(step.metric_stalled, 0),
            coalesce(step.metric_cancelled, 0), coalesce(step.metric_removed, 0)
        FROM ropeway.step WHERE step.queue = q.id AND step.number IS NULL
    ) AS m
    WHERE q.name = queue_name AND m.minute >= since
    GROUP BY m.minute
    HAVING sum(m.added + m.completed + m.failed + m.retried + m.stalled + m.cancelled + m.removed) > 0
    ORDER BY m.minute
$$;
