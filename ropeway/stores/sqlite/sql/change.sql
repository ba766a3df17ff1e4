-- Changes where jobs stand. Each takes :edits (json, a list of seq, priority, order and due_at, each null to keep it);
-- the job comes last, because the others are found by what it says.

-- statement: waiting
UPDATE waiting SET
    priority = coalesce(edit.value ->> 1, waiting.priority),
    ord = coalesce(edit.value ->> 2, waiting.ord)
FROM jsonb_each(:edits) AS edit
JOIN job ON job.seq = edit.value ->> 0
WHERE waiting.queue = job.queue AND waiting.priority = job.priority AND waiting.ord = job.ord;

-- statement: later
UPDATE later SET
    ord = coalesce(edit.value ->> 2, ord),
    due_at = coalesce(edit.value ->> 3, due_at)
FROM jsonb_each(:edits) AS edit
WHERE later.seq = edit.value ->> 0;

-- statement: jobs
UPDATE job SET
    priority = coalesce(edit.value ->> 1, priority),
    ord = coalesce(edit.value ->> 2, ord)
FROM jsonb_each(:edits) AS edit
WHERE job.seq = edit.value ->> 0 AND coalesce(edit.value ->> 1, edit.value ->> 2) IS NOT NULL;
