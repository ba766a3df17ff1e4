-- The row of a queue: settings, counters, event numbers. Every verb begins and ends with it.

-- statement: load
-- Takes :name. Returns no row if there is no such queue.
SELECT
    id, is_configured, is_paused, paused_names, max_active, events, events_from, at, newest_minute, first_deadline,
    stages, {{STATE_COLUMNS}}
FROM queue
WHERE name = :name;

-- statement: create
INSERT INTO queue (name) VALUES (:name) RETURNING id;

-- statement: save
UPDATE queue SET
    is_configured = :is_configured,
    is_paused = :is_paused,
    paused_names = :paused_names,
    max_active = :max_active,
    events = :events,
    events_from = :events_from,
    at = :at,
    newest_minute = :newest_minute,
    stages = :stages,
    {{SET_STATE_COLUMNS}}
WHERE id = :id;

-- statement: add_to_metric
INSERT INTO metric (queue, minute, {{METRIC_COLUMNS}})
VALUES (:queue, :minute, {{METRIC_PARAMETERS}})
ON CONFLICT DO UPDATE SET {{ADD_METRICS}};

-- statement: write_entry
INSERT INTO event (id, body) VALUES (?, ?);

-- statement: names
-- Every queue that has jobs, settings or schedules.
SELECT CAST(json_group_array(name) AS BLOB)
FROM (
    SELECT name
    FROM queue
    WHERE is_configured OR {{JOBS}} > 0 OR EXISTS (SELECT 1 FROM schedule WHERE schedule.queue = queue.id)
    ORDER BY name
);

-- statement: arrive
-- One new job waits.
INSERT INTO waiting (queue, priority, ord, name, has) VALUES (:queue, :priority, :ord, :name, :has);

-- statement: next_seq
SELECT coalesce(max(seq), 0) + 1 FROM job;

-- statement: newest_instant
SELECT max(at) FROM queue;
