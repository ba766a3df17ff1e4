-- Gives the data of an add that is not stored to the job that is there instead, if that has the same name and is not active.
-- Takes the queue, the job's id, the name and data of the add, and when the job is due from now on (null: unchanged). The job
-- must be locked.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.refresh(queue_id integer, job_id text, job_name text, new_data text, due bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ropeway.job AS j SET data = new_data
    WHERE j.queue = queue_id AND j.id = job_id AND j.name = job_name
        AND NOT EXISTS (SELECT FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = job_id);
    IF due IS NOT NULL THEN
        UPDATE ropeway.later AS l SET due_at = least(due, {{LAST_INSTANT}}) WHERE l.queue = queue_id AND l.id = job_id;
    END IF;
END
$$;
