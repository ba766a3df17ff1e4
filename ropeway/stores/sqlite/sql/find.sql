-- Pages of one state, each in its own order, from a key on. Each takes :queue, :name (or null), :limit and the key of
-- the last job of the page before (nulls for the first page). Returns rows of seq and the job's own key.

-- statement: waiting
SELECT CAST(json_group_array(json_array(seq, priority, ord)) AS BLOB)
FROM (
    SELECT abs(ord) AS seq, priority, ord FROM waiting
    WHERE queue = :queue AND (priority, ord) > (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY priority, ord
    LIMIT :limit
);

-- statement: waiting_reversed
SELECT CAST(json_group_array(json_array(seq, priority, ord)) AS BLOB)
FROM (
    SELECT abs(ord) AS seq, priority, ord FROM waiting
    WHERE queue = :queue AND (priority, ord) < (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY priority DESC, ord DESC
    LIMIT :limit
);

-- statement: waiting-children
SELECT CAST(json_group_array(json_array(seq, seq, 0)) AS BLOB)
FROM (
    SELECT seq FROM later
    WHERE queue = :queue AND due_at IS NULL AND (seq, 0) > (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY seq
    LIMIT :limit
);

-- statement: waiting-children_reversed
SELECT CAST(json_group_array(json_array(seq, seq, 0)) AS BLOB)
FROM (
    SELECT seq FROM later
    WHERE queue = :queue AND due_at IS NULL AND (seq, 0) < (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY seq DESC
    LIMIT :limit
);

-- statement: delayed
SELECT CAST(json_group_array(json_array(seq, due_at, ord)) AS BLOB)
FROM (
    SELECT seq, due_at, ord FROM later
    WHERE queue = :queue AND due_at IS NOT NULL AND (due_at, ord) > (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY due_at, ord
    LIMIT :limit
);

-- statement: delayed_reversed
SELECT CAST(json_group_array(json_array(seq, due_at, ord)) AS BLOB)
FROM (
    SELECT seq, due_at, ord FROM later
    WHERE queue = :queue AND due_at IS NOT NULL AND (due_at, ord) < (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY due_at DESC, ord DESC
    LIMIT :limit
);

-- statement: active
SELECT CAST(json_group_array(json_array(seq, started_at, seq)) AS BLOB)
FROM (
    SELECT seq, started_at FROM active
    WHERE queue = :queue AND (started_at, seq) > (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY started_at, seq
    LIMIT :limit
);

-- statement: active_reversed
SELECT CAST(json_group_array(json_array(seq, started_at, seq)) AS BLOB)
FROM (
    SELECT seq, started_at FROM active
    WHERE queue = :queue AND (started_at, seq) < (:first, :second)
        AND (:name IS NULL OR name = :name)
    ORDER BY started_at DESC, seq DESC
    LIMIT :limit
);

-- statement: finished
SELECT CAST(json_group_array(json_array(seq, finished_at, seq)) AS BLOB)
FROM (
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 0 AND (finished_at, seq) > (:first, :second)
            AND (:name IS NULL OR name = :name)
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 1 AND (finished_at, seq) > (:first, :second)
            AND (:name IS NULL OR name = :name)
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
            AND (:name IS NULL OR name = :name)
        ORDER BY finished_at DESC, seq DESC
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 1 AND (finished_at, seq) < (:first, :second)
            AND (:name IS NULL OR name = :name)
        ORDER BY finished_at DESC, seq DESC
        LIMIT :limit
    )
    ORDER BY finished_at DESC, seq DESC
    LIMIT :limit
);
