-- Puts a job in line that stood elsewhere, where it always stood.
-- Takes the job as it is to be.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.stand_in_line(job ropeway.place) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ropeway.waiting (
        ord, queue, priority, attempts_made, attempts_started, stalled_count, logged, id, name,
        started_at, renewed_at, token, worker, reason, progress
    )
    VALUES (
        job.ord, job.queue, job.priority, job.attempts_made, job.attempts_started, job.stalled_count, job.logged,
        job.id, job.name, job.started_at, job.renewed_at, job.token, job.worker, job.reason, job.progress
    )
$$;
