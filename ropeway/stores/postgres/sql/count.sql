-- Counts the jobs of each state: the tally, and the steps that are not folded yet.
-- Takes the queue.
-- Returns one row, the states in their order.
CREATE OR REPLACE FUNCTION ropeway.count(
    queue_name text, OUT waiting bigint, OUT waiting_children bigint, OUT delayed bigint, OUT active bigint,
    OUT completed bigint, OUT failed bigint, OUT cancelled bigint
)
LANGUAGE sql STABLE AS $$
    -- One statement, and so one moment: a fold under way is seen whole or not at all.
    SELECT
        coalesce(base.waiting, 0) + coalesce(sum(step.waiting), 0)::bigint,
        coalesce(base.waiting_children, 0) + coalesce(sum(step.waiting_children), 0)::bigint,
        coalesce(base.delayed, 0) + coalesce(sum(step.delayed), 0)::bigint,
        coalesce(base.active, 0) + coalesce(sum(step.active), 0)::bigint,
        coalesce(base.completed, 0) + coalesce(sum(step.completed), 0)::bigint,
        coalesce(base.failed, 0) + coalesce(sum(step.failed), 0)::bigint,
        coalesce(base.cancelled, 0) + coalesce(sum(step.cancelled), 0)::bigint
    FROM ropeway.queue AS q
    LEFT JOIN LATERAL (
        SELECT t.* FROM ropeway.tally AS t WHERE t.queue = q.id ORDER BY t.fold DESC LIMIT 1
    ) AS base ON true
    LEFT JOIN ropeway.step ON step.queue = q.id AND step.number IS NULL
    WHERE q.name = queue_name
    GROUP BY
        base.waiting, base.waiting_children, base.delayed, base.active, base.completed, base.failed, base.cancelled
$$;
