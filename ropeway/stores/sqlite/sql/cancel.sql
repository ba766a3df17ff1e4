-- Cancels jobs that are not yet final, running ones included.

-- statement: cancel
-- Takes :now, :reason, :cancelled (json, a list of seq and expires_at). They are still where they stood, too.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name, attempts_made, attempts_started, stalled_count, logged,
    -- The worker still runs the handler: without its token a late result is refused.
    token,
    worker, started_at, renewed_at, reason, progress
)
SELECT
    place.queue, 'cancelled', cancelled.value ->> 1 IS NULL, :now, place.seq, cancelled.value ->> 1, place.name,
    place.attempts_made, place.attempts_started, place.stalled_count, place.logged,
    NULL,
    place.worker, place.started_at, place.renewed_at, :reason, place.progress
FROM jsonb_each(:cancelled) AS cancelled
CROSS JOIN place ON place.seq = cancelled.value ->> 0;

-- statement: revoke
-- Takes :queue, :now, :locks (json, a list of id, token and why).
INSERT INTO revoked (queue, id, token, why, at)
SELECT :queue, value ->> 0, value ->> 1, value ->> 2, :now FROM jsonb_each(:locks);
