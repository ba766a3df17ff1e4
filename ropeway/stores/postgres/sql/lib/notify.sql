-- Sends notifications that calls left out because of the rate limit.
-- Takes them as `wake` returned them.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.notify(wakes text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ropeway.wake(
        split_part(owed, ':', 2)::integer, ltrim(split_part(owed, ':', 1), '-'), true, split_part(owed, ':', 3) = 'ahead'
    )
    FROM unnest(wakes) AS owed;
END
$$;
