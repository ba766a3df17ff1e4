-- Dedupe keys of one queue.

-- statement: take
-- Takes :queue, :until, :holders (json, an object: the id of the holder by key). Fails if one of them is held, even if its
-- time is over. An object, because its keys and values are columns: nothing is taken out of lists.
INSERT INTO held_key (queue, key, holder, until)
SELECT :queue, key, value, :until FROM json_each(:holders);

-- statement: write
-- Takes :queue, :keys (json, a list of key, holder, until, next).
INSERT INTO held_key (queue, key, holder, until, next)
SELECT :queue, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:keys) WHERE true
ON CONFLICT DO UPDATE SET holder = excluded.holder, until = excluded.until, next = excluded.next;

-- statement: free
-- Takes :queue, :keys (json).
DELETE FROM held_key WHERE queue = :queue AND key IN (SELECT value FROM json_each(:keys));

-- statement: held
-- Takes :queue, :keys (json). Returns a list of key, holder, until and next of those that are held.
SELECT CAST(json_group_array(json_array(key, json_object('id', holder, 'until', until, 'next', next))) AS BLOB)
FROM held_key
WHERE queue = :queue AND key IN (SELECT value FROM json_each(:keys));

-- statement: is_taken
-- Takes :queue (a name), :key, :id. Returns whether the key is held, also if its time is over, or the job was added before.
SELECT EXISTS (SELECT 1 FROM held_key WHERE held_key.queue = queue.id AND key = :key)
    OR EXISTS (SELECT 1 FROM job WHERE job.queue = queue.id AND job.id = :id)
FROM queue
WHERE name = :queue;

-- statement: of_jobs
-- Takes :seqs (json) of jobs that have a key. Returns those of the keys that are held, each behind the place in the list.
SELECT CAST(json_group_array(
    json_array(asked.key, held_key.key, json_object('id', holder, 'until', until, 'next', next))
) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN job ON job.seq = asked.value
CROSS JOIN held_key ON held_key.queue = job.queue AND held_key.key = job.extras ->> '$.dedupe.key';

-- statement: delayed
-- Takes :queue, :ids (json). Returns a list of seq and id of those that are delayed.
SELECT CAST(json_group_array(json_array(job.seq, job.id)) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN job ON job.queue = :queue AND job.id = asked.value
CROSS JOIN later ON later.seq = job.seq
WHERE later.due_at IS NOT NULL;

-- statement: refresh
-- Takes :seq, :name, :data. A job of another name keeps its own.
UPDATE job SET data = :data WHERE seq = :seq AND name = :name;

-- statement: postpone
-- Takes :seq, :due_at.
UPDATE later SET due_at = :due_at WHERE seq = :seq;

-- statement: free_old
-- Takes :queue, :now, :limit.
DELETE FROM held_key
WHERE queue = :queue AND key IN (SELECT key FROM held_key WHERE queue = :queue AND until <= :now LIMIT :limit);

-- statement: free_all
DELETE FROM held_key WHERE queue = :queue;
