-- What time brings.

-- statement: stalled
-- Takes :queue, :now, :limit. Returns active jobs whose lock ran out, the longest ago first.
SELECT CAST(json_group_array(
    json_array(
        late.seq, job.id, place.worker, place.attempts_started, place.attempts_made, place.stalled_count,
        place.renewed_at, job.options
    )
) AS BLOB)
FROM (
    SELECT seq FROM place
    WHERE queue = :queue AND state = 'active' AND lock_until <= :now
    ORDER BY lock_until
    LIMIT :limit
) AS late
CROSS JOIN place ON place.seq = late.seq
CROSS JOIN job ON job.seq = late.seq;

-- statement: stall
-- Takes :stalled (json, a list of seq, attempts used, reason).
UPDATE place SET
    state = 'waiting',
    token = NULL,
    lock_until = NULL,
    stalled_count = stalled_count + 1,
    attempts_made = attempts_made + (stalled.value ->> 1),
    reason = stalled.value ->> 2
FROM jsonb_each(:stalled) AS stalled
WHERE place.seq = stalled.value ->> 0;

-- statement: give_up
-- Takes :now, :given_up (json, a list of seq, attempts used, reason, expires_at).
UPDATE place SET
    state = 'failed',
    token = NULL,
    lock_until = NULL,
    stalled_count = stalled_count + 1,
    attempts_made = attempts_made + (given_up.value ->> 1),
    reason = given_up.value ->> 2,
    finished_at = :now,
    expires_at = given_up.value ->> 3
FROM jsonb_each(:given_up) AS given_up
WHERE place.seq = given_up.value ->> 0;

-- statement: expired
-- Takes :queue, :now, :limit. Returns a list of seq, id and state.
SELECT CAST(json_group_array(json_array(expired.seq, job.id, expired.state)) AS BLOB)
FROM (
    SELECT seq, state FROM place
    WHERE queue = :queue AND expires_at <= :now AND expires_at < 253402300799999
    ORDER BY expires_at
    LIMIT :limit
) AS expired
CROSS JOIN job ON job.seq = expired.seq;

-- statement: oldest_event
-- Takes :first (id). Returns the id of the queue's oldest entry.
SELECT min(id) FROM event WHERE id > :first;

-- statement: trim_events
-- Takes :first and :last (ids), :limit.
DELETE FROM event
WHERE id IN (SELECT id FROM event WHERE id BETWEEN :first AND :last ORDER BY id LIMIT :limit);

-- statement: trim_metrics
DELETE FROM metric WHERE queue = :queue AND minute < :before;

-- statement: trim_revoked
-- Takes :queue, :before, :limit. The oldest come first, so a look at the first ones is enough.
DELETE FROM revoked
WHERE number IN (
    SELECT number FROM (SELECT number, at FROM revoked WHERE queue = :queue ORDER BY number LIMIT :limit)
    WHERE at < :before
);

-- statement: trim_records
DELETE FROM record
WHERE (kind, key) IN (SELECT kind, key FROM record WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit);

-- statement: next_at
SELECT
    (SELECT min(due_at) FROM place WHERE queue = :queue AND state = 'delayed'),
    (SELECT min(lock_until) FROM place WHERE queue = :queue AND state = 'active'),
    (SELECT min(expires_at) FROM place WHERE queue = :queue AND expires_at < 253402300799999);
