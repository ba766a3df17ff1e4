-- Finished jobs wait again. Takes :seqs (json), :reset (0 or 1). They are still finished, too.
-- statement: wait
INSERT INTO waiting (
    queue, priority, ord, name, attempts_made, attempts_started, stalled_count, {{CARRIED_BY_RETRY}}
)
SELECT
    job.queue, job.priority, job.ord, job.name,
    iif(:reset, 0, finished.attempts_made),
    iif(:reset, 0, finished.attempts_started),
    iif(:reset, 0, finished.stalled_count),
    {{CARRIED_BY_RETRY}}
FROM json_each(:seqs) AS asked
CROSS JOIN finished ON finished.seq = asked.value
CROSS JOIN job ON job.seq = finished.seq;
