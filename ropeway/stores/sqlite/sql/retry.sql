-- Finished jobs wait again. The first two take :seqs (json), :reset (0 or 1). The jobs are still finished, too.

-- statement: wait
INSERT INTO waiting (
    queue, priority, ord, name, has, attempts_made, attempts_started, stalled_count, {{CARRIED_BY_RETRY}}
)
SELECT
    job.queue, job.priority, job.ord, job.name, job.has,
    iif(:reset, 0, finished.attempts_made),
    iif(:reset, 0, finished.attempts_started),
    iif(:reset, 0, finished.stalled_count),
    {{CARRIED_BY_RETRY}}
FROM json_each(:seqs) AS asked
CROSS JOIN finished ON finished.seq = asked.value
CROSS JOIN job ON job.seq = finished.seq;

-- statement: wait_for_children
INSERT INTO later (
    seq, queue, ord, name, attempts_made, attempts_started, stalled_count, {{CARRIED_BY_RETRY}}
)
SELECT
    job.seq, job.queue, job.ord, job.name,
    iif(:reset, 0, finished.attempts_made),
    iif(:reset, 0, finished.attempts_started),
    iif(:reset, 0, finished.stalled_count),
    {{CARRIED_BY_RETRY}}
FROM json_each(:seqs) AS asked
CROSS JOIN finished ON finished.seq = asked.value
CROSS JOIN job ON job.seq = finished.seq;
