-- Counts the jobs of a final state: the tally, and the steps that are not folded yet.
-- Takes the queue and the state.
-- Returns the number.
CREATE OR REPLACE FUNCTION ropeway.count_finished(queue_id integer, of_state ropeway.state) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- One statement, and so one moment: a fold under way is seen whole or not at all.
    RETURN (
        SELECT coalesce(sum(
            CASE of_state WHEN 'completed' THEN part.completed WHEN 'failed' THEN part.failed ELSE part.cancelled END
        ), 0)
        FROM (
            (
                SELECT t.completed, t.failed, t.cancelled FROM ropeway.tally AS t
                WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1
            )
            UNION ALL
            SELECT step.completed, step.failed, step.cancelled FROM ropeway.step
            WHERE step.queue = queue_id AND step.number IS NULL
        ) AS part
    );
END
$$;
