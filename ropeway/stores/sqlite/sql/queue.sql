-- The row of a queue: settings, counters, event numbers. Every verb begins and ends with it.

-- statement: load
-- Takes :name. Returns no row if there is no such queue.
SELECT
    id, is_configured, is_paused, paused_names, max_active, events, events_from, at, newest_minute,
    waiting, waiting_children, delayed, active, completed, failed, cancelled
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
    waiting = :waiting,
    waiting_children = :waiting_children,
    delayed = :delayed,
    active = :active,
    completed = :completed,
    failed = :failed,
    cancelled = :cancelled
WHERE id = :id;

-- statement: add_to_metric
INSERT INTO metric (queue, minute, added, completed, failed, retried, stalled, cancelled, removed)
VALUES (:queue, :minute, :added, :completed, :failed, :retried, :stalled, :cancelled, :removed)
ON CONFLICT DO UPDATE SET
    added = added + excluded.added,
    completed = completed + excluded.completed,
    failed = failed + excluded.failed,
    retried = retried + excluded.retried,
    stalled = stalled + excluded.stalled,
    cancelled = cancelled + excluded.cancelled,
    removed = removed + excluded.removed;

-- statement: write_entry
INSERT INTO event (id, body) VALUES (?, ?);

-- statement: names
-- Every queue that has jobs or settings.
SELECT CAST(json_group_array(name) AS BLOB)
FROM (
    SELECT name
    FROM queue
    WHERE is_configured
        OR waiting + waiting_children + delayed + active + completed + failed + cancelled > 0
    ORDER BY name
);

-- statement: arrive
-- One new job waits.
INSERT INTO waiting (queue, priority, ord, name) VALUES (:queue, :priority, :ord, :name);

-- statement: next_seq
SELECT coalesce(max(seq), 0) + 1 FROM job;

-- statement: newest_instant
SELECT max(at) FROM queue;
