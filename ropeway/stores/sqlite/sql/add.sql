-- Adds jobs to one queue.

-- statement: known
-- Takes :queue, :ids (json). Returns a list of id, name and data of those that exist.
SELECT CAST(json_group_array(json_array(job.id, job.name, job.data)) AS BLOB)
FROM json_each(:ids) AS asked
CROSS JOIN job ON job.queue = :queue AND job.id = asked.value;

-- statement: jobs
-- Takes :queue, :first, :jobs (json, a list of id, name, options, data, priority, order, created_at, has, parents,
-- family, extras). Fails if an id exists.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, has, parents, family, extras)
SELECT
    :first + key, :queue, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7, value ->> 8, value ->> 9, value ->> 10
FROM jsonb_each(:jobs);

-- statement: jobs_alike
-- The same where all have one :name, :options, :priority, :sign of their order, :now, :has and :parents, and no
-- children: :jobs is a list of id and data.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, has, parents)
SELECT
    :first + key, :queue, value ->> 0, :name, :options, value ->> 1, :priority, :sign * (:first + key), :now,
    :has, :parents
FROM jsonb_each(:jobs);

-- statement: siblings
-- The same for all children of a :family.
INSERT INTO job (
    seq, queue, id, name, options, data, priority, ord, created_at, has, parents, child_of, child_number
)
SELECT
    :first + key, :queue, value ->> 0, :name, :options, value ->> 1, :priority, :sign * (:first + key), :now,
    :has, :parents, :family, key
FROM jsonb_each(:jobs);

-- statement: jobs_alike_with_extras
-- The same with extras: :jobs is a list of id, data and extras.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, has, parents, extras)
SELECT
    :first + key, :queue, value ->> 0, :name, :options, value ->> 1, :priority, :sign * (:first + key), :now,
    :has, :parents, value ->> 2
FROM jsonb_each(:jobs);

-- statement: jobs_of_flows
-- The same where all have one :options, :priority, :sign of their order and :now, and no extras: :jobs is a list of id,
-- name, data, has, parents, the family it is a child of, its number there, and its own family.
INSERT INTO job (
    seq, queue, id, name, options, data, priority, ord, created_at, has, parents, child_of, child_number, family
)
SELECT
    :first + key, :queue, value ->> 0, value ->> 1, :options, value ->> 2, :priority, :sign * (:first + key), :now,
    value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM jsonb_each(:jobs);

-- statement: job
-- The same for one.
INSERT INTO job (seq, queue, id, name, options, data, priority, ord, created_at, has, parents, family, extras)
VALUES (:seq, :queue, :id, :name, :options, :data, :priority, :ord, :now, :has, :parents, :family, :extras);

-- statement: undo
-- Takes :first. Those that were inserted before one whose id exists.
DELETE FROM job WHERE seq >= :first;

-- statement: tags
-- Takes :queue, :tags (json, a list of seq and the list of its tags).
INSERT INTO tag (seq, number, queue, tag)
SELECT tagged.value ->> 0, given.key, :queue, given.value
FROM json_each(:tags) AS tagged
CROSS JOIN json_each(tagged.value, '$[1]') AS given;

-- statement: later
-- Takes :later (json, a list of seq and due_at, or null for those that wait for children).
INSERT INTO later (seq, queue, due_at, ord, name)
SELECT job.seq, job.queue, asked.value ->> 1, job.ord, job.name
FROM jsonb_each(:later) AS asked
CROSS JOIN job ON job.seq = asked.value ->> 0;

-- statement: waiting
-- Takes :first. All that may run.
INSERT INTO waiting (queue, priority, ord, name, has)
SELECT queue, priority, ord, name, has FROM job
WHERE seq >= :first AND seq NOT IN (SELECT seq FROM later WHERE seq >= :first);
