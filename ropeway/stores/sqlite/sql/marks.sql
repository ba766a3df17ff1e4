-- Named values that jobs leave for their later attempts.

-- statement: write
-- Takes seq, name, at and value.
INSERT INTO mark (seq, name, at, value) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET at = excluded.at, value = excluded.value;

-- statement: write_alike
-- Takes :seqs (json), :name, :at and :value.
INSERT INTO mark (seq, name, at, value) SELECT value, :name, :at, :value FROM json_each(:seqs) WHERE true
ON CONFLICT DO UPDATE SET at = excluded.at, value = excluded.value;

-- statement: forget
-- Takes seq and name.
DELETE FROM mark WHERE seq = ? AND name = ?;

-- statement: note
-- Takes :seqs (json). The rows of their states are noted by others.
UPDATE job SET has = has | {{HAS_MARKS}} WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: there
-- Takes :marks (json, a list of seq and name). Returns the places in the list of those that there are.
SELECT CAST(json_group_array(asked.key) AS BLOB)
FROM json_each(:marks) AS asked
CROSS JOIN mark ON mark.seq = asked.value ->> 0 AND mark.name = asked.value ->> 1;

-- statement: awaited
-- The same for those that end the delay of their job.
SELECT CAST(json_group_array(asked.key) AS BLOB)
FROM json_each(:marks) AS asked
CROSS JOIN later ON later.seq = asked.value ->> 0 AND later.awaits = asked.value ->> 1;
