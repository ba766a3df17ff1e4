-- Schedules of one queue.

-- statement: some
-- Takes :queue, :ids (json). Returns those that there are.
SELECT CAST(json_group_array(
    json_object({{SCHEDULE_FIELDS}})
) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN schedule AS chosen ON chosen.queue = :queue AND chosen.id = asked.value;

-- statement: page
-- Takes :queue, :after (an id), :limit.
SELECT CAST(json_group_array(
    json_object({{SCHEDULE_FIELDS}})
) AS BLOB)
FROM (SELECT * FROM schedule WHERE queue = :queue AND id > :after ORDER BY id LIMIT :limit) AS chosen;

-- statement: due
-- Takes :queue, :now, :limit.
SELECT CAST(json_group_array(
    json_object({{SCHEDULE_FIELDS}})
) AS BLOB)
FROM (SELECT * FROM schedule WHERE queue = :queue AND next_at <= :now ORDER BY next_at, id LIMIT :limit) AS chosen;

-- statement: write
INSERT INTO schedule (queue, id, value, next_at, version)
VALUES (:queue, :id, :value, :next_at, :version)
ON CONFLICT DO UPDATE SET value = excluded.value, next_at = excluded.next_at, version = excluded.version;

-- statement: delete
DELETE FROM schedule WHERE queue = :queue AND id = :id;

-- statement: delete_all
DELETE FROM schedule WHERE queue = :queue;
