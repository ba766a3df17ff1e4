-- Records that the lock of a running job was revoked. Numbers are in the order of commits, because readers go on from
-- the last one they saw.
-- Takes the queue, the job's id and token, what became of it (cancelled or removed), and the instant.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.revoke_lock(queue_id integer, job_id text, token text, why text, instant bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.revoked.number'), queue_id);
    INSERT INTO ropeway.revoked (at, queue, id, token, why) VALUES (instant, queue_id, job_id, token, why);
END
$$;
