-- What handlers, or others, add to jobs.

-- statement: progress
-- Takes :changes (json, a list of seq and progress).
UPDATE place SET progress = change.value ->> 1
FROM jsonb_each(:changes) AS change
WHERE place.seq = change.value ->> 0;

-- statement: data
-- Takes :changes (json, a list of seq and data).
UPDATE job SET data = change.value ->> 1
FROM jsonb_each(:changes) AS change
WHERE job.seq = change.value ->> 0;

-- statement: append_log
-- Takes :now, :lines (json, a list of seq, number, text).
INSERT INTO log (seq, number, at, text)
SELECT value ->> 0, value ->> 1, :now, value ->> 2 FROM jsonb_each(:lines);

-- statement: count_log
-- Takes :logged (json, a list of seq, lines ever logged, oldest number to keep).
UPDATE place SET logged = logged.value ->> 1
FROM jsonb_each(:logged) AS logged
WHERE place.seq = logged.value ->> 0;

-- statement: trim_log
DELETE FROM log
WHERE rowid IN (
    SELECT old.rowid
    FROM jsonb_each(:logged) AS logged
    CROSS JOIN log AS old ON old.seq = logged.value ->> 0 AND old.number < logged.value ->> 2
);
