-- Looks at jobs without changing them.

-- statement: places
-- Takes :queue, :ids (json). Returns a list in the order of :ids; the state is null where there is no such job.
SELECT CAST(json_group_array(
    json_array(
        coalesce(place.seq, 0), asked.value, place.state, place.token, place.worker,
        coalesce(place.attempts_started, 0), coalesce(place.logged, 0)
    )
) AS BLOB)
FROM json_each(:ids) AS asked
LEFT JOIN job ON job.queue = :queue AND job.id = asked.value
LEFT JOIN place ON place.seq = job.seq;

-- statement: options
-- Takes :seqs (json). Returns a list of seq and options.
SELECT CAST(json_group_array(json_array(job.seq, job.options)) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN job ON job.seq = asked.value;

-- statement: records
-- Takes :queue_name, :queue, :ids (json). Returns a list in the order of :ids, null where there is no such job.
SELECT CAST(json_group_array(
    iif(
        job.seq IS NULL,
        NULL,
        json_array(
            :queue_name, job.id, job.name, job.data, job.options,
            place.state, place.priority, place.ord, job.created_at,
            place.attempts_made, place.attempts_started, place.stalled_count,
            place.due_at, place.token, place.worker, place.started_at, place.renewed_at, place.lock_until,
            place.finished_at, place.expires_at, place.reason, place.progress, place.result
        )
    )
) AS BLOB)
FROM json_each(:ids) AS asked
LEFT JOIN job ON job.queue = :queue AND job.id = asked.value
LEFT JOIN place ON place.seq = job.seq;

-- statement: records_by_seq
-- Takes :queue_name, :seqs (json). Returns a list in the order of :seqs.
SELECT CAST(json_group_array(
    json_array(
        :queue_name, job.id, job.name, job.data, job.options,
        place.state, place.priority, place.ord, job.created_at,
        place.attempts_made, place.attempts_started, place.stalled_count,
        place.due_at, place.token, place.worker, place.started_at, place.renewed_at, place.lock_until,
        place.finished_at, place.expires_at, place.reason, place.progress, place.result
    )
) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN job ON job.seq = asked.value
CROSS JOIN place ON place.seq = job.seq;

-- statement: failures
SELECT CAST(json_group_array(
    json_object('attempt', attempt, 'at', at, 'worker', worker, 'reason', reason, 'trace', trace)
) AS BLOB)
FROM (SELECT * FROM failure WHERE seq = :seq ORDER BY number);

-- statement: log
SELECT CAST(json_group_array(json_object('at', at, 'text', text)) AS BLOB)
FROM (SELECT * FROM log WHERE seq = :seq ORDER BY number);

-- statement: metrics
-- Takes :queue, :since. Oldest first.
SELECT CAST(json_group_array(
    json_object(
        'minute', minute, 'added', added, 'completed', completed, 'failed', failed, 'retried', retried,
        'stalled', stalled, 'cancelled', cancelled, 'removed', removed
    )
) AS BLOB)
FROM (SELECT * FROM metric WHERE queue = :queue AND minute >= :since ORDER BY minute);
