-- What an add does if its dedupe key is held: the table `ACTIONS` of job/dedupe.py.
-- Takes its mode, and the state of the job that holds the key.
-- Returns the action.
CREATE OR REPLACE FUNCTION ropeway.dedupe_action(mode text, state text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE mode || ' ' || state {{DEDUPE_ACTIONS}} END
$$;
