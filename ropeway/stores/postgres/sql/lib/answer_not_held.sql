-- Answers an outcome or a renewal of a job that is not active under its token.
-- Takes the queue, the job's id, the token, and the states that the move leads to (null: it is a renewal).
-- Returns two letters: the verdict (d done before, l lost, m missing) and the job's state.
CREATE OR REPLACE FUNCTION ropeway.answer_not_held(queue_id integer, job_id text, token text, targets ropeway.state[])
RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    job record;
BEGIN
    SELECT p.state, p.token INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = job_id;
    IF NOT FOUND THEN
        RETURN 'm-';
    END IF;
    RETURN CASE
            WHEN job.token = answer_not_held.token AND (job.state = ANY (targets) OR (targets IS NULL AND job.state = 'active'))
                THEN 'd'
            ELSE 'l'
        END || ropeway.state_letter(job.state);
END
$$;
