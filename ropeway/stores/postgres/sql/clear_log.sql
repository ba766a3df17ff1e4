-- Deletes the oldest lines of a job's log. The numbers of later lines go on as before.
-- Takes the queue, the job's id, and how many lines to keep.
-- Returns two letters: the verdict and the state.
CREATE OR REPLACE FUNCTION ropeway.clear_log(queue_name text, job_id text, keep_lines bigint) RETURNS text
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    queue_id integer;
    job ropeway.whole_job;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF cardinality(ropeway.lock_jobs(queue_id, ARRAY[job_id])) = 0 THEN
        RETURN 'm-';
    END IF;
    SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = job_id;
    DELETE FROM ropeway.log_line AS l WHERE l.seq = abs(job.ord) AND l.number <= job.logged - keep_lines;
    RETURN 'd' || ropeway.state_letter(job.state);
END
$$;
