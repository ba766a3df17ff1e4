-- Reads the failures and the log of a job, the oldest first.
-- Takes the queue and the job's id.
-- Returns no row if there is no such job; else failures and log lines as lists (json), and how many lines were ever
-- logged.
CREATE OR REPLACE FUNCTION ropeway.history(queue_name text, job_id text)
RETURNS TABLE (failures text, log text, logged integer)
LANGUAGE sql STABLE AS $$
    SELECT
        (
            SELECT json_agg(
                json_build_object(
                    'attempt', f.attempt, 'started_at', f.started_at, 'at', f.at, 'worker', f.worker, 'reason', f.reason,
                    'trace', f.trace
                ) ORDER BY f.number
            ) FROM ropeway.failure AS f WHERE f.seq = abs(p.ord)
        )::text,
        (
            SELECT json_agg(json_build_object('at', l.at, 'text', l.text) ORDER BY l.number)
            FROM ropeway.log_line AS l WHERE l.seq = abs(p.ord)
        )::text,
        coalesce(p.logged, ropeway.raise_no_state(p.id))
    FROM ropeway.whole_job AS p
    WHERE p.queue = (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name) AND p.id = job_id
$$;
