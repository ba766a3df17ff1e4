-- Cancels jobs that are not yet final, running ones included.

-- statement: cancel
-- Takes :now, :reason, :cancelled (json, a list of seq and expires_at).
UPDATE place SET
    state = 'cancelled',
    -- The worker still runs the handler: without its token a late result is refused.
    token = NULL,
    lock_until = NULL,
    due_at = NULL,
    finished_at = :now,
    expires_at = cancelled.value ->> 1,
    reason = :reason
FROM jsonb_each(:cancelled) AS cancelled
WHERE place.seq = cancelled.value ->> 0;

-- statement: revoke
-- Takes :queue, :now, :locks (json, a list of id and token).
INSERT INTO revoked (queue, id, token, at)
SELECT :queue, value ->> 0, value ->> 1, :now FROM jsonb_each(:locks);
