-- Changes where jobs stand. Takes :edits (json, a list of seq, priority, order and due_at, each null to keep it).
-- statement: change
UPDATE place SET
    priority = coalesce(edit.value ->> 1, priority),
    ord = coalesce(edit.value ->> 2, ord),
    due_at = coalesce(edit.value ->> 3, due_at)
FROM jsonb_each(:edits) AS edit
WHERE place.seq = edit.value ->> 0;
