-- Looks at jobs without changing them.

-- statement: located
-- Takes :queue, :ids (json). Returns those that there are.
SELECT CAST(json_group_array(
    json_array(
        whole_job.seq, whole_job.id, whole_job.state, whole_job.token, whole_job.worker, whole_job.attempts_started,
        whole_job.logged, whole_job.has
    )
) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN whole_job ON whole_job.queue = :queue AND whole_job.id = asked.value;

-- statement: located_active
-- The same by :seqs (json), for jobs that are active, and with nothing in the place of ids.
SELECT CAST(json_group_array(json_array(seq, '', {{ACTIVE}}, token, worker, attempts_started, logged, has)) AS BLOB)
FROM active
WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: options
-- Takes :seqs (json). Returns a list of seq and options.
SELECT CAST(json_group_array(json_array(job.seq, job.options)) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN job ON job.seq = asked.value;

-- statement: records
-- Takes :queue_name, :queue, :ids (json). Returns those that there are.
SELECT CAST(json_group_array(
    {{RECORD}}
) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN whole_job ON whole_job.queue = :queue AND whole_job.id = asked.value;

-- statement: records_by_seq
-- Takes :queue_name, :seqs (json). Returns a list in the order of :seqs.
SELECT CAST(json_group_array(
    {{RECORD}}
) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN whole_job ON whole_job.seq = asked.value;

-- statement: listed_by_seq
-- The same without marks.
SELECT CAST(json_group_array(
    {{LISTED_RECORD}}
) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN whole_job ON whole_job.seq = asked.value;

-- statement: failures
SELECT CAST(json_group_array(
    json_object(
        'attempt', attempt, 'started_at', started_at, 'at', at, 'worker', worker, 'reason', reason, 'trace', trace
    )
) AS BLOB)
FROM (SELECT * FROM failure WHERE seq = :seq ORDER BY number);

-- statement: log
SELECT CAST(json_group_array(json_object('at', at, 'text', text)) AS BLOB)
FROM (SELECT * FROM log WHERE seq = :seq ORDER BY number);

-- statement: log_from
-- This and the next take :seq, :after (number), :limit. Return a list of number, at and text, the nearest first.
SELECT CAST(json_group_array(json_array(number, at, text)) AS BLOB)
FROM (SELECT * FROM log WHERE seq = :seq AND number > :after ORDER BY number LIMIT :limit);

-- statement: log_reversed_from
SELECT CAST(json_group_array(json_array(number, at, text)) AS BLOB)
FROM (SELECT * FROM log WHERE seq = :seq AND number < :after ORDER BY number DESC LIMIT :limit);

-- statement: count_waiting
-- Takes :queue, :asked (json, a list of priority and the ord to go on behind), :limit. Returns for each how many wait
-- there, at most the limit, and the ord of the last of them.
SELECT CAST(json_group_array(
    json((
        SELECT json_array(count(*), coalesce(max(ord), 0))
        FROM (
            SELECT ord FROM waiting
            WHERE queue = :queue AND priority = asked.value ->> 0 AND ord > asked.value ->> 1
            ORDER BY ord
            LIMIT :limit
        )
    ))
) AS BLOB)
FROM json_each(:asked) AS asked;

-- statement: count_others
-- Takes :queue, :priority, :limit. Returns how many wait with other priorities, at most the limit.
SELECT count(*)
FROM (
    SELECT 1 FROM waiting WHERE queue = :queue AND priority < :priority
    UNION ALL
    SELECT 1 FROM waiting WHERE queue = :queue AND priority > :priority
    LIMIT :limit
);

-- statement: metrics
-- Takes :queue, :since. Oldest first.
SELECT CAST(json_group_array(
    json_object({{METRIC_FIELDS}})
) AS BLOB)
FROM (SELECT * FROM metric WHERE queue = :queue AND minute >= :since ORDER BY minute);
