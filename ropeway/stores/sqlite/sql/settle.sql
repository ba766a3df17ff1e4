-- Records how attempts ended. The tokens were compared in the same transaction.

-- statement: complete
-- Takes :seqs (json), :now, :expires_at. For jobs without a result.
UPDATE place SET
    state = 'completed',
    lock_until = NULL,
    finished_at = :now,
    expires_at = :expires_at,
    reason = NULL,
    result = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: complete_with_results
-- Takes :now, :expires_at, :completed (json, a list of seq and result).
UPDATE place SET
    state = 'completed',
    lock_until = NULL,
    finished_at = :now,
    expires_at = :expires_at,
    reason = NULL,
    result = completed.value ->> 1
FROM jsonb_each(:completed) AS completed
WHERE place.seq = completed.value ->> 0;

-- statement: fail
-- Takes :now, :failed (json, a list of seq, expires_at, reason).
UPDATE place SET
    state = 'failed',
    lock_until = NULL,
    finished_at = :now,
    expires_at = failed.value ->> 1,
    reason = failed.value ->> 2,
    attempts_made = attempts_made + 1
FROM jsonb_each(:failed) AS failed
WHERE place.seq = failed.value ->> 0;

-- statement: send_back
-- Takes :back (json, a list of seq, due_at or null, attempts used, reason or null to keep it).
UPDATE place SET
    state = iif(back.value ->> 1 IS NULL, 'waiting', 'delayed'),
    lock_until = NULL,
    due_at = back.value ->> 1,
    attempts_made = attempts_made + (back.value ->> 2),
    reason = coalesce(back.value ->> 3, reason)
FROM jsonb_each(:back) AS back
WHERE place.seq = back.value ->> 0;

-- statement: remember_failures
-- Takes :now, :failures (json, a list of seq, attempt, worker, reason, trace, how many to keep).
INSERT INTO failure (seq, number, attempt, at, worker, reason, trace)
SELECT
    value ->> 0,
    coalesce((SELECT max(number) FROM failure WHERE seq = value ->> 0), 0) + 1,
    value ->> 1, :now, value ->> 2, value ->> 3, value ->> 4
FROM jsonb_each(:failures);

-- statement: trim_failures
DELETE FROM failure
WHERE rowid IN (
    SELECT old.rowid
    FROM jsonb_each(:failures) AS newer
    CROSS JOIN failure AS old ON old.seq = newer.value ->> 0
        AND old.number <= (SELECT max(number) FROM failure WHERE seq = newer.value ->> 0) - (newer.value ->> 5)
);
