-- Records how attempts ended. The tokens were compared in the same transaction. Jobs are put where they belong now, and
-- are still active, too, until they leave.

-- statement: renumber_job
-- This and the next five take :renumbered (json, a list of seq and the new one).
UPDATE job SET seq = new.value ->> 1, ord = new.value ->> 1
FROM jsonb_each(:renumbered) AS new
WHERE job.seq = new.value ->> 0;

-- statement: renumber_active
UPDATE active SET seq = new.value ->> 1
FROM jsonb_each(:renumbered) AS new
WHERE active.seq = new.value ->> 0;

-- statement: renumber_failure
UPDATE failure SET seq = new.value ->> 1
FROM jsonb_each(:renumbered) AS new
WHERE failure.seq = new.value ->> 0;

-- statement: renumber_log
UPDATE log SET seq = new.value ->> 1
FROM jsonb_each(:renumbered) AS new
WHERE log.seq = new.value ->> 0;

-- statement: renumber_tag
UPDATE tag SET seq = new.value ->> 1
FROM jsonb_each(:renumbered) AS new
WHERE tag.seq = new.value ->> 0;

-- statement: renumber_mark
UPDATE mark SET seq = new.value ->> 1
FROM jsonb_each(:renumbered) AS new
WHERE mark.seq = new.value ->> 0;

-- statement: wait
-- Takes :back (json, a list of seq, null, attempts used, reason or null to keep it).
INSERT INTO waiting (queue, priority, ord, name, has, attempts_made, reason, {{CARRIED_BY_SETTLE}})
SELECT
    job.queue, job.priority, job.ord, job.name, job.has,
    attempts_made + (back.value ->> 2), coalesce(back.value ->> 3, reason), {{CARRIED_BY_SETTLE}}
FROM jsonb_each(:back) AS back
CROSS JOIN active ON active.seq = back.value ->> 0
CROSS JOIN job ON job.seq = active.seq;

-- statement: delay
-- The same with the due_at in the place of the null, and at the end the mark that is awaited, or null.
INSERT INTO later (seq, queue, due_at, awaits, ord, name, attempts_made, reason, {{CARRIED_BY_SETTLE}})
SELECT
    job.seq, job.queue, back.value ->> 1, back.value ->> 4, job.ord, job.name,
    attempts_made + (back.value ->> 2), coalesce(back.value ->> 3, reason), {{CARRIED_BY_SETTLE}}
FROM jsonb_each(:back) AS back
CROSS JOIN active ON active.seq = back.value ->> 0
CROSS JOIN job ON job.seq = active.seq;

-- statement: remember_failures
-- Of jobs that are still active. Takes :now, :failures (json, a list of seq, attempt, worker, reason, trace, how many to
-- keep).
INSERT INTO failure (seq, number, attempt, started_at, at, worker, reason, trace)
SELECT
    value ->> 0,
    coalesce((SELECT max(number) FROM failure WHERE seq = value ->> 0), 0) + 1,
    value ->> 1, active.started_at, :now, value ->> 2, value ->> 3, value ->> 4
FROM jsonb_each(:failures)
CROSS JOIN active ON active.seq = value ->> 0;

-- statement: trim_failures
DELETE FROM failure
WHERE rowid IN (
    SELECT old.rowid
    FROM jsonb_each(:failures) AS newer
    CROSS JOIN failure AS old ON old.seq = newer.value ->> 0
        AND old.number <= (SELECT max(number) FROM failure WHERE seq = newer.value ->> 0) - (newer.value ->> 5)
);
