-- Removes jobs and everything about them.

-- statement: jobs
-- This and the next seven take :seqs (json).
DELETE FROM job WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: failures
DELETE FROM failure WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: log
DELETE FROM log WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: tags
DELETE FROM tag WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: marks
DELETE FROM mark WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: links
-- Before the jobs.
DELETE FROM link WHERE family IN (SELECT family FROM job WHERE seq IN (SELECT value FROM json_each(:seqs)));

-- statement: leave_families
-- Numbers of families come again.
UPDATE job SET child_of = NULL, child_number = NULL
WHERE child_of IN (SELECT family FROM job WHERE seq IN (SELECT value FROM json_each(:seqs)));

-- statement: families
DELETE FROM family WHERE id IN (SELECT family FROM job WHERE seq IN (SELECT value FROM json_each(:seqs)));

-- statement: has_more
-- Whether any job has failures and log lines.
SELECT EXISTS (SELECT 1 FROM failure), EXISTS (SELECT 1 FROM log);

-- statement: oldest_finished
-- Takes :queue, :state, :until, :limit. Returns a list of seq, id, state and has.
SELECT CAST(json_group_array(json_array(oldest.seq, job.id, :state, job.has)) AS BLOB)
FROM (
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 0 AND finished_at <= :until
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 1 AND finished_at <= :until
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    ORDER BY finished_at, seq
    LIMIT :limit
) AS oldest
CROSS JOIN job ON job.seq = oldest.seq;

-- statement: has_kept
-- Takes :queue, :state. Whether some are kept for ever.
SELECT EXISTS (SELECT 1 FROM finished WHERE queue = :queue AND state = :state AND is_kept = 1);

-- statement: oldest_counted
-- Takes :queue, :state, :limit. Returns as the ones before, without those that are kept for ever.
SELECT CAST(json_group_array(json_array(oldest.seq, job.id, :state, job.has)) AS BLOB)
FROM (
    SELECT seq FROM finished
    WHERE queue = :queue AND state = :state AND is_kept = 0
    ORDER BY finished_at, seq
    LIMIT :limit
) AS oldest
CROSS JOIN job ON job.seq = oldest.seq;

-- statement: oldest_beyond
-- The same for those beyond the newest :count: where some are kept for ever, nobody knows how many others there are.
SELECT CAST(json_group_array(json_array(oldest.seq, job.id, :state, job.has)) AS BLOB)
FROM (
    SELECT seq FROM finished
    WHERE queue = :queue AND state = :state AND is_kept = 0 AND (finished_at, seq) <= (
        SELECT finished_at, seq FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 0
        ORDER BY finished_at DESC, seq DESC
        LIMIT 1 OFFSET :count
    )
    ORDER BY finished_at, seq
    LIMIT :limit
) AS oldest
CROSS JOIN job ON job.seq = oldest.seq;

-- statement: oldest_waiting
-- As the one before, by the instant of adding, without jobs of schedules. It looks at all jobs of that state: no index
-- is kept for this.
SELECT CAST(json_group_array(json_array(seq, id, :state, has)) AS BLOB)
FROM (
    SELECT job.seq, job.id, job.has
    FROM waiting
    CROSS JOIN job ON job.seq = abs(waiting.ord)
    WHERE waiting.queue = :queue AND job.created_at <= :until
        AND job.has & {{HAS_SCHEDULE}} = 0
    ORDER BY job.created_at, job.seq
    LIMIT :limit
);

-- statement: oldest_delayed
SELECT CAST(json_group_array(json_array(seq, id, :state, has)) AS BLOB)
FROM (
    SELECT job.seq, job.id, job.has
    FROM later
    CROSS JOIN job ON job.seq = later.seq
    WHERE later.queue = :queue AND later.due_at IS NOT NULL AND job.created_at <= :until
        AND job.has & {{HAS_SCHEDULE}} = 0
    ORDER BY job.created_at, job.seq
    LIMIT :limit
);

-- statement: oldest_waiting_children
SELECT CAST(json_group_array(json_array(seq, id, :state, has)) AS BLOB)
FROM (
    SELECT job.seq, job.id, job.has
    FROM later
    CROSS JOIN job ON job.seq = later.seq
    WHERE later.queue = :queue AND later.due_at IS NULL AND job.created_at <= :until
        AND job.has & {{HAS_SCHEDULE}} = 0
    ORDER BY job.created_at, job.seq
    LIMIT :limit
);

-- statement: any_of_queue
-- Takes :queue, :limit. Returns a list of seq, id, state, has and token.
SELECT CAST(json_group_array(json_array(seq, id, state, has, token)) AS BLOB)
FROM (SELECT seq, id, state, has, token FROM whole_job WHERE queue = :queue LIMIT :limit);

-- statement: metrics
DELETE FROM metric WHERE queue = :queue;

-- statement: events
-- Takes :first and :last (ids).
DELETE FROM event WHERE id BETWEEN :first AND :last;
