-- A job as a row of the active ones, wherever it stood: the form in which jobs end.
-- Takes the job.
-- Returns the row; what only active jobs have is null.
CREATE OR REPLACE FUNCTION ropeway.row_of(job ropeway.place) RETURNS ropeway.active
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    r ropeway.active;
BEGIN
    r.ord := job.ord;
    r.queue := job.queue;
    r.priority := job.priority;
    r.reason := job.reason;
    {{CARRY_FROM_JOB_TO_R}}
    RETURN r;
END
$$;
