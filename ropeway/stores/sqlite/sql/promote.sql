-- Delayed jobs wait.

-- statement: due
-- Takes :queue, :now, :limit. Returns a list of seq and id, in the order in which they became due.
SELECT CAST(json_group_array(json_array(due.seq, job.id)) AS BLOB)
FROM (
    SELECT seq FROM place
    WHERE queue = :queue AND state = 'delayed' AND due_at <= :now
    ORDER BY due_at, ord
    LIMIT :limit
) AS due
CROSS JOIN job ON job.seq = due.seq;

-- statement: promote
-- Takes :seqs (json).
UPDATE place SET state = 'waiting', due_at = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs));
