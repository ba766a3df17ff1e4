-- Answers a settling move, or a renewal, of a job that is not active under its token.
-- Takes the queue, the job's id, the token, and the states that the move leads to (null: a repeat is not recognised).
-- Returns two letters: the verdict (d done, l lost, m missing) and the job's state.
CREATE OR REPLACE FUNCTION ropeway.standing(queue_id integer, job_id text, token text, targets ropeway.state[])
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
            WHEN place.token = standing.token AND (place.state = ANY (targets) OR (targets IS NULL AND place.state = 'active'))
                THEN 'd'
            ELSE 'l'
        END || ropeway.letter(place.state);
END
$$;
