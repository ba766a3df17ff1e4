-- The table of job/flows.py: what the end of a child does to a parent that waits.
-- Takes how the child ended, and the policy it was added with.
-- Returns the effect.
CREATE OR REPLACE FUNCTION ropeway.effect(ended text, policy text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE ended || ' ' || policy {{EFFECTS}} END
$$;
