-- Makes jobs final. They are still where they stood, too, until they leave. The first three take :state, :now,
-- :expires_at, :attempts and :stalls (to be added to the job's), :keeps_token, :ended.

-- statement: alike
-- For active jobs without a reason or a result; :ended (json) is a list of seqs.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name,
    attempts_made, stalled_count, token, {{CARRIED_BY_END}}
)
SELECT
    queue, :state, :expires_at IS NULL, :now, seq, :expires_at, name,
    attempts_made + :attempts, stalled_count + :stalls, iif(:keeps_token, token, NULL), {{CARRIED_BY_END}}
FROM active
WHERE seq IN (SELECT value FROM json_each(:ended));

-- statement: active
-- :ended (json) is a list of seq, reason, result.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name,
    attempts_made, stalled_count, token, reason, result, {{CARRIED_BY_END}}
)
SELECT
    queue, :state, :expires_at IS NULL, :now, seq, :expires_at, name,
    attempts_made + :attempts, stalled_count + :stalls, iif(:keeps_token, token, NULL),
    ended.value ->> 1, ended.value ->> 2, {{CARRIED_BY_END}}
FROM jsonb_each(:ended) AS ended
CROSS JOIN active ON active.seq = ended.value ->> 0;

-- statement: anywhere
-- The same for jobs that are not active.
INSERT INTO finished (
    queue, state, is_kept, finished_at, seq, expires_at, name,
    attempts_made, stalled_count, token, reason, result, {{CARRIED_BY_END}}
)
SELECT
    whole_job.queue, :state, :expires_at IS NULL, :now, whole_job.seq, :expires_at, whole_job.name,
    attempts_made + :attempts, stalled_count + :stalls, iif(:keeps_token, token, NULL),
    ended.value ->> 1, ended.value ->> 2, {{CARRIED_BY_END}}
FROM jsonb_each(:ended) AS ended
CROSS JOIN whole_job ON whole_job.seq = ended.value ->> 0;

-- statement: revoke
-- Takes :queue, :now, :why, :locks (json, a list of id and token).
INSERT INTO revoked (queue, id, token, why, at)
SELECT :queue, value ->> 0, value ->> 1, :why, :now FROM jsonb_each(:locks);
