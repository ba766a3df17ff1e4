-- The letter of a state in answers.
-- Takes a state.
-- Returns w, k (waiting for children), d, a, c, f, or x (cancelled).
CREATE OR REPLACE FUNCTION ropeway.state_letter(state ropeway.state) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE state
        WHEN 'waiting-children' THEN 'k' WHEN 'cancelled' THEN 'x' ELSE left(state::text, 1)
    END
$$;
