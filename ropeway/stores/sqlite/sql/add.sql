-- Adds jobs to one queue.

-- statement: known
-- Takes :queue, :ids (json). Returns a list of id, name and data of those that exist.
SELECT CAST(json_group_array(json_array(job.id, job.name, job.data)) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN job ON job.queue = :queue AND job.id = asked.value;

-- statement: jobs
-- Takes :queue, :first, :jobs (json, a list of id, name, options, data, priority, order, created_at, is_tagged). Fails if
-- an id exists.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, is_tagged)
SELECT
    :first + key, :queue, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7
FROM jsonb_each(:jobs);

-- statement: jobs_alike
-- The same where all have one :name, :options, :priority, :sign of their order, :now and :is_tagged: :jobs is a list of
-- id and data.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, is_tagged)
SELECT
    :first + key, :queue, value ->> 0, :name, :options, value ->> 1, :priority, :sign * (:first + key), :now, :is_tagged
FROM jsonb_each(:jobs);

-- statement: job
-- The same for one.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, is_tagged)
VALUES (:seq, :queue, :id, :name, :options, :data, :priority, :ord, :now, :is_tagged);

-- statement: tags
-- Takes :queue, :tags (json, a list of seq and the list of its tags).
INSERT INTO tag (seq, number, queue, tag)
SELECT tagged.value ->> 0, given.key, :queue, given.value
FROM json_each(:tags) AS tagged
CROSS JOIN json_each(tagged.value, '$[1]') AS given;

-- statement: delayed
-- Takes :delayed (json, a list of seq and due_at).
INSERT INTO later (seq, queue, due_at, ord, name)
SELECT job.seq, job.queue, delayed.value ->> 1, job.ord, job.name
FROM jsonb_each(:delayed) AS delayed
CROSS JOIN job ON job.seq = delayed.value ->> 0;

-- statement: waiting
-- Takes :first. All that are not delayed.
INSERT INTO waiting (queue, priority, ord, name)
SELECT queue, priority, ord, name FROM job
WHERE seq >= :first AND seq NOT IN (SELECT seq FROM later WHERE seq >= :first);
