-- Makes jobs final. They are still where they stood, too, until they leave. The first three take :state, :now,
-- :expires_at, :attempts and :stalls (to be added to the job's), :keeps_token, :ended.

-- statement: alike
-- For active jobs without a reason or a result; :ended (json) is a list of seqs.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at, progress
)
SELECT
    queue, :state, :expires_at IS NULL, :now, seq, :expires_at, name,
    attempts_made + :attempts, attempts_started, stalled_count + :stalls, logged,
    iif(:keeps_token, token, NULL), worker, started_at, renewed_at, progress
FROM active
WHERE seq IN (SELECT value FROM json_each(:ended));

-- statement: active
-- :ended (json) is a list of seq, reason, result.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at, reason, progress, result
)
SELECT
    queue, :state, :expires_at IS NULL, :now, seq, :expires_at, name,
    attempts_made + :attempts, attempts_started, stalled_count + :stalls, logged,
    iif(:keeps_token, token, NULL), worker, started_at, renewed_at, ended.value ->> 1, progress, ended.value ->> 2
FROM jsonb_each(:ended) AS ended
CROSS JOIN active ON active.seq = ended.value ->> 0;

-- statement: anywhere
-- The same for jobs that are not active.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at, reason, progress, result
)
SELECT
    place.queue, :state, :expires_at IS NULL, :now, place.seq, :expires_at, place.name,
    place.attempts_made + :attempts, place.attempts_started, place.stalled_count + :stalls, place.logged,
    iif(:keeps_token, place.token, NULL), place.worker, place.started_at, place.renewed_at,
    ended.value ->> 1, place.progress, ended.value ->> 2
FROM jsonb_each(:ended) AS ended
CROSS JOIN place ON place.seq = ended.value ->> 0;

-- statement: revoke
-- Takes :queue, :now, :why, :locks (json, a list of id and token).
INSERT INTO revoked (queue, id, token, why, at)
SELECT :queue, value ->> 0, value ->> 1, :why, :now FROM jsonb_each(:locks);
