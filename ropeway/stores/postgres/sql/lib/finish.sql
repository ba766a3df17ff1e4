-- Puts a job among the finished ones that stood elsewhere.
-- Takes the job as it is to be: its state, finished_at and expires_at too.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.finish(job ropeway.place) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO ropeway.finished (
        seq, finished_at, expires_at, state, queue, attempts_made, attempts_started, stalled_count, logged, id, name,
        started_at, renewed_at, token, worker, reason, progress, result
    )
    VALUES (
        abs(job.ord), job.finished_at, job.expires_at, job.state, job.queue, job.attempts_made, job.attempts_started,
        job.stalled_count, job.logged, job.id, job.name, job.started_at, job.renewed_at, job.token, job.worker,
        job.reason, job.progress, job.result
    )
$$;
