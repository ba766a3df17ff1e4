-- Converts a job of any state to a row of `active`, the form in which `end_jobs` takes it.
-- Takes the job.
-- Returns the row; what only active jobs have is null.
CREATE OR REPLACE FUNCTION ropeway.active_row(job ropeway.whole_job) RETURNS ropeway.active
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
