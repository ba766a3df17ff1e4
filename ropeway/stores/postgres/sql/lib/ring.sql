-- Makes wakes that were not allowed when they came up.
-- Takes them, as `wake` said them.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.ring(wakes text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ropeway.wake(split_part(owed, ':', 2)::integer, ltrim(split_part(owed, ':', 1), '-'), true)
    FROM unnest(wakes) AS owed;
END
$$;
