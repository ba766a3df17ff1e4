-- Gives waiting jobs to one worker.

-- statement: choose
-- Takes :queue, :queue_name, :limit and what the claim writes. Returns the records as the claim will leave them.
SELECT CAST(json_group_array(
    json_array(
        :queue_name, job.id, job.name, job.data, job.options,
        'active', place.priority, place.ord, job.created_at,
        place.attempts_made, place.attempts_started + 1, place.stalled_count,
        NULL, :token, :worker, :now, :now, :lock_until,
        NULL, NULL, place.reason, place.progress, place.result
    )
) AS BLOB)
FROM (
    SELECT seq FROM place
    WHERE queue = :queue AND state = 'waiting'
    ORDER BY priority, ord
    LIMIT :limit
) AS chosen
CROSS JOIN place ON place.seq = chosen.seq
CROSS JOIN job ON job.seq = chosen.seq;

-- statement: choose_named
-- The same, for jobs of the :names (json) only. The most urgent of each name, and of those the most urgent.
SELECT CAST(json_group_array(
    json_array(
        :queue_name, job.id, job.name, job.data, job.options,
        'active', place.priority, place.ord, job.created_at,
        place.attempts_made, place.attempts_started + 1, place.stalled_count,
        NULL, :token, :worker, :now, :now, :lock_until,
        NULL, NULL, place.reason, place.progress, place.result
    )
) AS BLOB)
FROM (
    SELECT candidate.seq
    FROM json_each(:names) AS asked
    CROSS JOIN place AS candidate ON candidate.seq IN (
        SELECT seq FROM place
        WHERE queue = :queue AND name = asked.value AND state = 'waiting'
        ORDER BY priority, ord
        LIMIT :limit
    )
    ORDER BY candidate.priority, candidate.ord
    LIMIT :limit
) AS chosen
CROSS JOIN place ON place.seq = chosen.seq
CROSS JOIN job ON job.seq = chosen.seq;

-- statement: names_waiting
-- Every name that has waiting jobs; a step in the index for each, however many jobs it has.
WITH RECURSIVE found (name) AS (
    SELECT min(name) FROM place WHERE queue = :queue AND state = 'waiting'
    UNION ALL
    SELECT (SELECT min(name) FROM place WHERE queue = :queue AND state = 'waiting' AND name > found.name)
    FROM found
    WHERE found.name IS NOT NULL
)
SELECT CAST(json_group_array(name) AS BLOB) FROM found WHERE name IS NOT NULL;

-- statement: take
-- Takes :seqs (json). Nobody can have moved them: the transaction that chose them is the only writer.
UPDATE place SET
    state = 'active',
    due_at = NULL,
    attempts_started = attempts_started + 1,
    token = :token,
    worker = :worker,
    started_at = :now,
    renewed_at = :now,
    lock_until = :lock_until
WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: held
-- What is still active under :token, in the order of claiming. Returns a list of seqs.
SELECT CAST(json_group_array(seq) AS BLOB)
FROM (
    SELECT seq FROM place
    WHERE queue = :queue AND state = 'active' AND token = :token
    ORDER BY priority, ord
);

-- statement: next_due
SELECT min(due_at) FROM place WHERE queue = :queue AND state = 'delayed';
