-- Gives waiting jobs to one worker.

-- statement: choose
-- Takes :queue, :queue_name, :limit and what the claim writes. Returns the records as the claim will leave them.
SELECT CAST(json_group_array(
    {{CLAIMED_RECORD}}
) AS BLOB)
FROM (SELECT * FROM waiting WHERE queue = :queue ORDER BY priority, ord LIMIT :limit) AS chosen
CROSS JOIN job ON job.seq = abs(chosen.ord);

-- statement: others_first
-- Takes :queue, :limit, :names (json). Whether jobs of other names are among the most urgent.
SELECT EXISTS (
    SELECT 1
    FROM (SELECT name FROM waiting WHERE queue = :queue ORDER BY priority, ord LIMIT :limit) AS urgent
    WHERE urgent.name NOT IN (SELECT value FROM json_each(:names))
);

-- statement: choose_named
-- The same, for jobs of the :names (json) only. The most urgent of each name, and of those the most urgent.
SELECT CAST(json_group_array(
    {{CLAIMED_RECORD}}
) AS BLOB)
FROM (
    SELECT candidate.*
    FROM json_each(:names) AS asked
    CROSS JOIN waiting AS candidate ON candidate.queue = :queue AND (candidate.priority, candidate.ord) IN (
        SELECT priority, ord FROM waiting
        WHERE queue = :queue AND name = asked.value
        ORDER BY priority, ord
        LIMIT :limit
    )
    ORDER BY candidate.priority, candidate.ord
    LIMIT :limit
) AS chosen
CROSS JOIN job ON job.seq = abs(chosen.ord);

-- statement: names_waiting
-- Every name that has waiting jobs; a step in the index for each, however many jobs it has.
WITH RECURSIVE found (name) AS (
    SELECT min(name) FROM waiting WHERE queue = :queue
    UNION ALL
    SELECT (SELECT min(name) FROM waiting WHERE queue = :queue AND name > found.name)
    FROM found
    WHERE found.name IS NOT NULL
)
SELECT CAST(json_group_array(name) AS BLOB) FROM found WHERE name IS NOT NULL;

-- statement: start
-- Takes :queue, the :priority and :ord of the last one chosen, and what the claim writes. Those chosen by `choose` are
-- all up to there. Nobody can have moved them: the transaction that chose them is the only writer.
INSERT INTO active (
    seq, queue, name, has, attempts_started, token, worker, started_at, renewed_at, lock_until, alone,
    {{CARRIED_BY_CLAIM}}
)
SELECT
    abs(ord), queue, name, has, attempts_started + 1, :token, :worker, :now, :now, :lock_until, :alone,
    {{CARRIED_BY_CLAIM}}
FROM waiting
WHERE queue = :queue AND (priority, ord) <= (:priority, :ord);

-- statement: leave
DELETE FROM waiting WHERE queue = :queue AND (priority, ord) <= (:priority, :ord);

-- statement: start_named
-- As the two before, for those that `choose_named` chose: :keys (json, a list of priority and order).
INSERT INTO active (
    seq, queue, name, has, attempts_started, token, worker, started_at, renewed_at, lock_until, alone,
    {{CARRIED_BY_CLAIM}}
)
SELECT
    abs(ord), queue, name, has, attempts_started + 1, :token, :worker, :now, :now, :lock_until, :alone,
    {{CARRIED_BY_CLAIM}}
FROM waiting
WHERE queue = :queue AND (priority, ord) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(:keys));

-- statement: leave_named
DELETE FROM waiting
WHERE queue = :queue AND (priority, ord) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(:keys));

-- statement: start_new
-- A job that was just added, and did not have to wait.
INSERT INTO active (
    seq, queue, name, has, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at, lock_until, alone
)
VALUES (:seq, :queue, :name, :has, 0, 1, 0, 0, :token, :worker, :now, :now, :lock_until, :alone);

-- statement: held
-- What is still active under :token, in the order of claiming. Returns a list of seqs.
SELECT CAST(json_group_array(seq) AS BLOB)
FROM (
    SELECT active.seq
    FROM active
    CROSS JOIN job ON job.seq = active.seq
    WHERE active.queue = :queue AND active.token = :token
    ORDER BY job.priority, job.ord
);

-- statement: next_due
SELECT min(due_at) FROM later WHERE queue = :queue AND due_at IS NOT NULL;
