-- What handlers, or others, add to jobs.

-- statement: note_held
-- Takes :seqs (json), :token, :progress or null to keep it, :has (bits to add). Returns a row for each that the token holds.
UPDATE active SET progress = coalesce(:progress, progress), has = has | :has
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND token = :token
RETURNING seq;

-- statement: note_marks
-- Takes :seqs (json).
UPDATE job SET has = has | {{HAS_MARKS}}
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND has & {{HAS_MARKS}} = 0;

-- statement: note_active
-- This and the next two take :notes (json, a list of seq, progress or null to keep it, lines ever logged, has).
UPDATE active SET
    progress = coalesce(note.value ->> 1, progress),
    logged = note.value ->> 2,
    has = note.value ->> 3
FROM jsonb_each(:notes) AS note
WHERE active.seq = note.value ->> 0;

-- statement: note_waiting
UPDATE waiting SET
    progress = coalesce(note.value ->> 1, progress),
    logged = note.value ->> 2,
    has = note.value ->> 3
FROM jsonb_each(:notes) AS note
JOIN job ON job.seq = note.value ->> 0
WHERE waiting.queue = job.queue AND waiting.priority = job.priority AND waiting.ord = job.ord;

-- statement: note_later
UPDATE later SET
    progress = coalesce(note.value ->> 1, progress),
    logged = note.value ->> 2
FROM jsonb_each(:notes) AS note
WHERE later.seq = note.value ->> 0;

-- statement: alone
-- Takes :changes (json, a list of seq and whether it runs alone).
UPDATE active SET alone = change.value ->> 1
FROM jsonb_each(:changes) AS change
WHERE active.seq = change.value ->> 0;

-- statement: clear_stalls
-- Takes :seqs (json).
UPDATE active SET stalled_count = 0
FROM jsonb_each(:seqs) AS asked
WHERE active.seq = asked.value;

-- statement: data
-- Takes :changes (json, a list of seq and data).
UPDATE job SET data = change.value ->> 1
FROM jsonb_each(:changes) AS change
WHERE job.seq = change.value ->> 0;

-- statement: append_log
-- Takes :now, :lines (json, a list of seq, number, text).
INSERT INTO log (seq, number, at, text)
SELECT value ->> 0, value ->> 1, :now, value ->> 2 FROM jsonb_each(:lines);

-- statement: trim_log
-- Takes :kept (json, a list of seq and the oldest number to keep).
DELETE FROM log
WHERE rowid IN (
    SELECT old.rowid
    FROM jsonb_each(:kept) AS kept
    CROSS JOIN log AS old ON old.seq = kept.value ->> 0 AND old.number < kept.value ->> 1
);
