-- Pages of one state, each in its own order, from a key on. Each takes :queue, :name and :tag (or null), :limit and the
-- key of the last job of the page before (or one beyond all). Returns a list of seq and the job's own key.

-- statement: waiting
SELECT CAST(json_group_array(json_array(seq, priority, ord)) AS BLOB)
FROM (
    SELECT abs(ord) AS seq, priority, ord FROM waiting
    WHERE queue = :queue AND (priority, ord) > (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = abs(ord)))
    ORDER BY priority, ord
    LIMIT :limit
);

-- statement: waiting_reversed
SELECT CAST(json_group_array(json_array(seq, priority, ord)) AS BLOB)
FROM (
    SELECT abs(ord) AS seq, priority, ord FROM waiting
    WHERE queue = :queue AND (priority, ord) < (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = abs(ord)))
    ORDER BY priority DESC, ord DESC
    LIMIT :limit
);

-- statement: waiting-children
SELECT CAST(json_group_array(json_array(seq, seq, 0)) AS BLOB)
FROM (
    SELECT seq FROM later
    WHERE queue = :queue AND due_at IS NULL AND (seq, 0) > (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = later.seq))
    ORDER BY seq
    LIMIT :limit
);

-- statement: waiting-children_reversed
SELECT CAST(json_group_array(json_array(seq, seq, 0)) AS BLOB)
FROM (
    SELECT seq FROM later
    WHERE queue = :queue AND due_at IS NULL AND (seq, 0) < (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = later.seq))
    ORDER BY seq DESC
    LIMIT :limit
);

-- statement: delayed
SELECT CAST(json_group_array(json_array(seq, due_at, ord)) AS BLOB)
FROM (
    SELECT seq, due_at, ord FROM later
    WHERE queue = :queue AND due_at IS NOT NULL AND (due_at, ord) > (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = later.seq))
    ORDER BY due_at, ord
    LIMIT :limit
);

-- statement: delayed_reversed
SELECT CAST(json_group_array(json_array(seq, due_at, ord)) AS BLOB)
FROM (
    SELECT seq, due_at, ord FROM later
    WHERE queue = :queue AND due_at IS NOT NULL AND (due_at, ord) < (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = later.seq))
    ORDER BY due_at DESC, ord DESC
    LIMIT :limit
);

-- statement: active
SELECT CAST(json_group_array(json_array(seq, started_at, seq)) AS BLOB)
FROM (
    SELECT seq, started_at FROM active
    WHERE queue = :queue AND (started_at, seq) > (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = active.seq))
    ORDER BY started_at, seq
    LIMIT :limit
);

-- statement: active_reversed
SELECT CAST(json_group_array(json_array(seq, started_at, seq)) AS BLOB)
FROM (
    SELECT seq, started_at FROM active
    WHERE queue = :queue AND (started_at, seq) < (:first, :second)
        AND (:name IS NULL OR name = :name)
        AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = active.seq))
    ORDER BY started_at DESC, seq DESC
    LIMIT :limit
);

-- statement: finished
SELECT CAST(json_group_array(json_array(seq, finished_at, seq)) AS BLOB)
FROM (
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 0 AND (finished_at, seq) > (:first, :second)
            AND finished_at <= :until
            AND (:name IS NULL OR name = :name)
            AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = finished.seq))
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 1 AND (finished_at, seq) > (:first, :second)
            AND finished_at <= :until
            AND (:name IS NULL OR name = :name)
            AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = finished.seq))
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    ORDER BY finished_at, seq
    LIMIT :limit
);

-- statement: finished_reversed
SELECT CAST(json_group_array(json_array(seq, finished_at, seq)) AS BLOB)
FROM (
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 0 AND (finished_at, seq) < (:first, :second)
            AND finished_at <= :until
            AND (:name IS NULL OR name = :name)
            AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = finished.seq))
        ORDER BY finished_at DESC, seq DESC
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 1 AND (finished_at, seq) < (:first, :second)
            AND finished_at <= :until
            AND (:name IS NULL OR name = :name)
            AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag AND seq = finished.seq))
        ORDER BY finished_at DESC, seq DESC
        LIMIT :limit
    )
    ORDER BY finished_at DESC, seq DESC
    LIMIT :limit
);

-- statement: count_tagged
-- Takes :queue, :tag, :limit. Returns how many jobs have the tag, at most the limit.
SELECT count(*) FROM (SELECT 1 FROM tag WHERE queue = :queue AND tag = :tag LIMIT :limit);

-- statement: tagged
-- Takes :queue, :tag. Returns a list of seq, name, state and the columns that order jobs, of all that have the tag.
SELECT CAST(json_group_array(
    json_array(seq, name, state, priority, ord, due_at, started_at, finished_at)
) AS BLOB)
FROM (SELECT DISTINCT seq AS tagged FROM tag WHERE queue = :queue AND tag = :tag)
CROSS JOIN whole_job ON whole_job.seq = tagged;
