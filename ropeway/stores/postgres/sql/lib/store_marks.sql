-- Writes marks as rows of `mark`, for which the row of a job's state has no room.
-- Takes the queue, the job's id, and the marks (see `write_held`). The job must be locked.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.store_marks(queue_id integer, job_id text, given text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    number_of_job bigint;
BEGIN
    SELECT j.older_marks INTO number_of_job FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = job_id;
    IF number_of_job IS NULL THEN
        UPDATE ropeway.job AS j SET older_marks = abs(j.ord) WHERE j.queue = queue_id AND j.id = job_id
        RETURNING j.older_marks INTO number_of_job;
    ELSE
        DELETE FROM ropeway.mark AS m
        WHERE m.number = number_of_job AND m.name = ANY (
            ARRAY(SELECT new.name FROM ropeway.marks_in(given) AS new WHERE new.value IS NULL)
        );
    END IF;
    INSERT INTO ropeway.mark (number, at, name, value)
    SELECT number_of_job, new.at, new.name, new.value FROM ropeway.marks_in(given) AS new WHERE new.value IS NOT NULL
    ON CONFLICT (number, name) DO UPDATE SET at = excluded.at, value = excluded.value;
END
$$;
