-- Whether an active job has a mark.
-- Takes the queue, the job's id, and the name of the mark.
-- Returns a boolean.
CREATE OR REPLACE FUNCTION ropeway.has_mark(queue_id integer, job_id text, mark_name text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(
        (
            SELECT newer.value IS NOT NULL
            FROM ropeway.active AS a CROSS JOIN ropeway.marks_in(a.marks) AS newer
            WHERE a.queue = queue_id AND a.id = job_id AND newer.name = mark_name
        ),
        EXISTS (
            SELECT FROM ropeway.job AS j JOIN ropeway.mark AS m ON m.number = j.older_marks
            WHERE j.queue = queue_id AND j.id = job_id AND m.name = mark_name
        )
    );
END
$$;
