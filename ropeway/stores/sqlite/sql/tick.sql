-- What time brings.

-- statement: stalled
-- Takes :queue, :now, :limit. Returns active jobs whose lock ran out, the longest ago first.
SELECT CAST(json_group_array(
    json_array(
        late.seq, job.id, late.worker, late.attempts_started, late.attempts_made, late.stalled_count,
        late.renewed_at, late.alone, job.options, late.has
    )
) AS BLOB)
FROM (
    SELECT * FROM active
    WHERE queue = :queue AND lock_until <= :now
    ORDER BY lock_until
    LIMIT :limit
) AS late
CROSS JOIN job ON job.seq = late.seq;

-- statement: stall
-- Takes :stalled (json, a list of seq, attempts used, reason). They are still active, too, until they leave.
INSERT INTO waiting (
    queue, priority, ord, name, has, attempts_made, stalled_count, reason, {{CARRIED_BY_STALL}}
)
SELECT
    job.queue, job.priority, job.ord, job.name, job.has,
    attempts_made + (stalled.value ->> 1), stalled_count + 1, stalled.value ->> 2, {{CARRIED_BY_STALL}}
FROM jsonb_each(:stalled) AS stalled
CROSS JOIN active ON active.seq = stalled.value ->> 0
CROSS JOIN job ON job.seq = active.seq;

-- statement: old
-- Takes :queue, :now, :limit. Returns a list of seq, id, state and has.
SELECT CAST(json_group_array(json_array(outdated.seq, job.id, outdated.state, job.has)) AS BLOB)
FROM (
    SELECT seq, state FROM finished
    WHERE queue = :queue AND expires_at <= :now AND expires_at < {{LAST_INSTANT}}
    ORDER BY expires_at
    LIMIT :limit
) AS outdated
CROSS JOIN job ON job.seq = outdated.seq;

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
    (SELECT min(due_at) FROM later WHERE queue = :queue AND due_at IS NOT NULL),
    (SELECT min(lock_until) FROM active WHERE queue = :queue),
    (SELECT min(expires_at) FROM finished WHERE queue = :queue AND expires_at < {{LAST_INSTANT}}),
    (SELECT min(next_at) FROM schedule WHERE queue = :queue AND next_at IS NOT NULL);

-- statement: ended_between
-- Takes :queue, :state, :after, :until, :limit. Returns a list of seq, id, state, has and finished_at, of jobs that ended later
-- than one instant and up to another.
SELECT CAST(json_group_array(json_array(ended.seq, job.id, :state, job.has, ended.finished_at)) AS BLOB)
FROM (
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 0 AND finished_at > :after AND finished_at <= :until
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, finished_at FROM finished
        WHERE queue = :queue AND state = :state AND is_kept = 1 AND finished_at > :after AND finished_at <= :until
        ORDER BY finished_at, seq
        LIMIT :limit
    )
    ORDER BY finished_at, seq
    LIMIT :limit
) AS ended
CROSS JOIN job ON job.seq = ended.seq;

-- statement: next_ended
-- Takes :queue, :after, :states (json). Returns when the first job ended that ended later than an instant.
SELECT min((
    SELECT finished_at FROM finished
    WHERE queue = :queue AND finished.state = named.value AND is_kept = kept.value AND finished_at > :after
    ORDER BY finished_at
    LIMIT 1
))
FROM json_each(:states) AS named CROSS JOIN json_each('[0, 1]') AS kept;
