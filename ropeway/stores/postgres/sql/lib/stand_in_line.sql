-- Puts a job in line that stood elsewhere, where it always stood.
-- Takes the job as it is to be.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.stand_in_line(job ropeway.place) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ropeway.waiting (ord, queue, priority, {{CARRIED}}, reason)
    VALUES (job.ord, job.queue, job.priority, {{CARRIED_OF_JOB}}, job.reason)
$$;
