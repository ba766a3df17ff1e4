-- Notes that a running job's lock was taken away. Numbers are given out in the order of commits, because readers go on
-- from the last that they saw.
-- Takes the queue, the job's id and token, what became of it (cancelled or removed), and the instant.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.revoke(queue_id integer, job_id text, token text, why text, instant bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.revoked.number'), queue_id);
    INSERT INTO ropeway.revoked (at, queue, id, token, why) VALUES (instant, queue_id, job_id, token, why);
END
$$;
