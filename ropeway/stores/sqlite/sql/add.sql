-- Adds jobs to one queue.

-- statement: next_seq
SELECT coalesce(max(seq), 0) + 1 FROM job;

-- statement: known
-- Takes :queue, :ids (json). Returns a list of id, name and data of those that exist.
SELECT CAST(json_group_array(json_array(job.id, job.name, job.data)) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN job ON job.queue = :queue AND job.id = asked.value;

-- statement: jobs
-- Takes :queue, :first, :now, :jobs (json, a list of id, name, options, data). Fails if an id exists.
INSERT INTO job (seq, queue, id, name, options, created_at, data)
SELECT :first + key, :queue, value ->> 0, value ->> 1, value ->> 2, :now, value ->> 3
FROM jsonb_each(:jobs);

-- statement: places
-- Takes :queue, :first, :places (json, a list of name, priority, order, due_at).
INSERT INTO place (seq, queue, name, state, priority, ord, due_at)
SELECT
    :first + key, :queue, value ->> 0, iif(value ->> 3 IS NULL, 'waiting', 'delayed'),
    value ->> 1, value ->> 2, value ->> 3
FROM jsonb_each(:places);

-- statement: places_waiting
-- The same for jobs that wait in the order of adding with the common priority. Takes :queue, :first.
INSERT INTO place (seq, queue, name, state, priority, ord)
SELECT seq, queue, name, 'waiting', 0, seq FROM job WHERE seq >= :first;
