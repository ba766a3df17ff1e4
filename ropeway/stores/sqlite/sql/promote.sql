-- Delayed jobs wait.

-- statement: due
-- Takes :queue, :now, :limit. Returns a list of seq and id, in the order in which they became due.
SELECT CAST(json_group_array(json_array(due.seq, job.id)) AS BLOB)
FROM (
    SELECT seq FROM later
    WHERE queue = :queue AND due_at <= :now
    ORDER BY due_at, ord
    LIMIT :limit
) AS due
CROSS JOIN job ON job.seq = due.seq;

-- statement: wait
-- Takes :seqs (json). They are still delayed, too.
INSERT INTO waiting (queue, priority, ord, name, has, {{CARRIED}})
SELECT job.queue, job.priority, job.ord, job.name, job.has, {{CARRIED}}
FROM json_each(:seqs) AS asked
CROSS JOIN later ON later.seq = asked.value
CROSS JOIN job ON job.seq = later.seq;
