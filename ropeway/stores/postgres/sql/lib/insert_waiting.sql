-- Inserts a job into `waiting` with the priority and order that it has.
-- Takes the job as it is to be stored.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.insert_waiting(job ropeway.whole_job) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ropeway.waiting (ord, queue, priority, {{CARRIED}}, reason, start_by)
    VALUES (job.ord, job.queue, job.priority, {{CARRIED_OF_JOB}}, job.reason, job.start_by)
$$;
