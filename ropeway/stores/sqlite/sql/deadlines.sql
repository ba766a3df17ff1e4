-- Instants by which jobs have to be started.

-- statement: add
-- Takes :queue, :deadlines (json, a list of seq and the instant).
INSERT INTO deadline (seq, queue, at)
SELECT value ->> 0, :queue, value ->> 1 FROM jsonb_each(:deadlines);

-- statement: remove
-- Takes :seqs (json); some may have none.
DELETE FROM deadline WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: due
-- Takes :queue, :now, :limit. Returns jobs that were not started in time, the earliest first: seq, id, state, options, has.
SELECT CAST(json_group_array(
    json_array(whole_job.seq, whole_job.id, whole_job.state, whole_job.options, whole_job.has)
) AS BLOB)
FROM (SELECT seq FROM deadline WHERE queue = :queue AND at <= :now ORDER BY at, seq LIMIT :limit) AS due
CROSS JOIN whole_job ON whole_job.seq = due.seq;

-- statement: first
SELECT min(at) FROM deadline WHERE queue = :queue;

-- statement: note_first
-- Takes :queue, :at.
UPDATE queue SET first_deadline = :at WHERE id = :queue;
