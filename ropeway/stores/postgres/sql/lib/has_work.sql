-- Whether a claim may find jobs.
-- Takes the queue's id.
-- Returns true if any are waiting, or due.
CREATE OR REPLACE FUNCTION ropeway.has_work(queue_id integer) RETURNS boolean
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}}
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM ropeway.waiting AS w WHERE w.queue = queue_id)
        OR EXISTS (
            SELECT FROM ropeway.later AS l
            WHERE l.queue = queue_id AND l.due_at IS NOT NULL AND l.due_at <= ropeway.clock()
        );
END
$$;
