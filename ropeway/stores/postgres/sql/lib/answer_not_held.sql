-- Answers an outcome or a renewal of a job that is not active under its token.
-- Takes the queue, the job's id, the token, and the states that the move leads to (null: a repeat is not recognised).
-- Returns two letters: the verdict (d done before, l lost, m missing) and the job's state.
CREATE OR REPLACE FUNCTION ropeway.answer_not_held(queue_id integer, job_id text, token text, targets ropeway.state[])
RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    place record;
BEGIN
    SELECT p.state, p.token INTO place FROM ropeway.place AS p WHERE p.queue = queue_id AND p.id = job_id;
    IF NOT FOUND THEN
        RETURN 'm-';
    END IF;
    RETURN CASE
            WHEN place.token = answer_not_held.token AND (place.state = ANY (targets) OR (targets IS NULL AND place.state = 'active'))
                THEN 'd'
            ELSE 'l'
        END || ropeway.state_letter(place.state);
END
$$;
