-- Adds the jobs of accepted outcomes.
-- Takes the jobs (json, a list of objects: the fields of a new job, and the number of its outcome, from 0 on), the
-- letters of all outcomes, the instant, and whether it may notify.
-- Returns the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.add_of_outcomes(adds text, letters text, instant bigint, may_wake boolean) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ropeway.add_listed(
        (
            -- Only what was active just now: an outcome that is repeated has added its jobs before.
            SELECT json_agg(given.job ORDER BY given.n)
            FROM json_array_elements(adds::json) WITH ORDINALITY AS given (job, n)
            WHERE substr(letters, 2 * (given.job ->> 'outcome')::integer + 1, 2) = 'da'
        ),
        instant, may_wake
    );
END
$$;
