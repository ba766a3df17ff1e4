-- Removes a job that is held, and everything about it.
-- Takes the job and the instant; an active one's lock is revoked.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.drop_job(job ropeway.place, instant bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF job.state = 'active' THEN
        PERFORM ropeway.revoke(job.queue, job.id, job.token, 'removed', instant);
    END IF;
    PERFORM ropeway.leave(job);
    PERFORM ropeway.forget_past(ARRAY[abs(job.ord)]);
    DELETE FROM ropeway.job AS j WHERE j.queue = job.queue AND j.id = job.id;
END
$$;
