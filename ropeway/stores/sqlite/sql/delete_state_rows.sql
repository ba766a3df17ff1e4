-- Takes jobs from where they stood. Each takes :seqs (json); jobs that stand elsewhere are left alone.

-- statement: waiting
DELETE FROM waiting
WHERE (queue, priority, ord) IN (
    SELECT job.queue, job.priority, job.ord
    FROM json_each(:seqs) AS asked
    CROSS JOIN job ON job.seq = asked.value
);

-- statement: active
DELETE FROM active WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: later
DELETE FROM later WHERE seq IN (SELECT value FROM json_each(:seqs));

-- statement: finished
DELETE FROM finished WHERE seq IN (SELECT value FROM json_each(:seqs));
