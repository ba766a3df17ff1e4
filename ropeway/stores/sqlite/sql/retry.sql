-- Finished jobs wait again. Takes :seqs (json), :reset (0 or 1).
-- statement: retry
UPDATE place SET
    state = 'waiting',
    result = NULL,
    reason = NULL,
    finished_at = NULL,
    expires_at = NULL,
    token = NULL,
    progress = NULL,
    attempts_made = iif(:reset, 0, attempts_made),
    attempts_started = iif(:reset, 0, attempts_started),
    stalled_count = iif(:reset, 0, stalled_count)
WHERE seq IN (SELECT value FROM json_each(:seqs));
