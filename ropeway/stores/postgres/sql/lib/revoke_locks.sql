-- Records that locks of running jobs were revoked, and notifies. Numbers are in the order of commits, because readers go
-- on from the last one they saw. Called after all other locks of a call are held.
-- Takes the queue, the jobs' ids and tokens, what became of them (cancelled or removed), and the instant.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.revoke_locks(queue_id integer, ids text[], tokens text[], why text, instant bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.revoked.number'), queue_id);
    INSERT INTO ropeway.revoked (at, queue, id, token, why)
    SELECT instant, queue_id, given.id, given.token, revoke_locks.why FROM unnest(ids, tokens) AS given (id, token);
    PERFORM ropeway.wake(queue_id, 'revoked', true);
END
$$;
