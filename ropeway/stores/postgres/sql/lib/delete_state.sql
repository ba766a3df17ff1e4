-- Deletes a job's row from the table of its state. The job must be locked.
-- Takes the job.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.delete_state(job ropeway.whole_job) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    CASE job.state
        WHEN 'active' THEN
            DELETE FROM ropeway.active AS a WHERE a.queue = job.queue AND a.id = job.id;
        WHEN 'waiting' THEN
            DELETE FROM ropeway.waiting AS w
            WHERE w.queue = job.queue AND w.priority = job.priority AND w.ord = job.ord;
        WHEN 'delayed', 'waiting-children' THEN
            DELETE FROM ropeway.later AS l WHERE l.queue = job.queue AND l.id = job.id;
        ELSE
            DELETE FROM ropeway.finished AS f WHERE f.queue = job.queue AND f.id = job.id;
    END CASE;
END
$$;
