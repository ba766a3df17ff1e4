-- Adds entries to a step: what updates or outcomes of jobs announce.
-- Takes the step, and for each entry what it is, its jobs (json, comma separated: lists of id and details), and the position of
-- each (an array, as text; null: all, in order); for each position whether its events happen (null: all do), how many positions
-- there are, and the instant.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.announce(
    INOUT s ropeway.step, kinds text[], listed text[], positions text[], accepted boolean[], total integer, instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    jobs text;
    amount integer;
    places integer[];
BEGIN
    FOR k IN 1 .. coalesce(cardinality(kinds), 0) LOOP
        places := positions[k]::integer[];
        jobs := listed[k];
        amount := coalesce(cardinality(places), total);
        IF accepted IS NOT NULL THEN
            SELECT count(*), string_agg(each.job::text, ',' ORDER BY each.n) INTO amount, jobs
            FROM json_array_elements(('[' || listed[k] || ']')::json) WITH ORDINALITY AS each (job, n)
            WHERE accepted[coalesce(places[each.n], each.n)];
        END IF;
        IF amount > 0 THEN
            s.entries := concat_ws(',', s.entries, ropeway.entry(kinds[k], instant, NULL, jobs));
            s.events := coalesce(s.events, 0) + amount;
        END IF;
    END LOOP;
END
$$;
