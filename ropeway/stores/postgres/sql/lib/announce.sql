-- Adds entries to a step: what updates or outcomes of jobs announce.
-- Takes the step, the ids, and for each entry what it is, the details of all its jobs (json), its jobs (json, comma separated:
-- lists of id and details; null: their details are those of all), and the position of each job (an array, as text; null: all,
-- in order); for each position whether its events happen (null: all do), and the instant.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.announce(
    INOUT s ropeway.step, ids text[], kinds text[], details text[], listed text[], positions text[], accepted boolean[],
    instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    everyone text := '["' || array_to_string(ids, '",null],["') || '",null]';
    jobs text;
    amount integer;
    places integer[];
BEGIN
    FOR k IN 1 .. coalesce(cardinality(kinds), 0) LOOP
        places := positions[k]::integer[];
        IF accepted IS NULL AND (places IS NULL OR listed[k] IS NOT NULL) THEN
            amount := coalesce(cardinality(places), cardinality(ids));
            jobs := coalesce(listed[k], everyone);
        ELSIF listed[k] IS NULL THEN
            SELECT count(*), string_agg('["' || ids[each.position] || '",null]', ',' ORDER BY each.n) INTO amount, jobs
            FROM unnest(coalesce(places, array_positions(accepted, true))) WITH ORDINALITY AS each (position, n)
            WHERE accepted IS NULL OR accepted[each.position];
        ELSE
            SELECT count(*), string_agg(each.job::text, ',' ORDER BY each.n) INTO amount, jobs
            FROM json_array_elements(('[' || listed[k] || ']')::json) WITH ORDINALITY AS each (job, n)
            WHERE accepted[coalesce(places[each.n], each.n)];
        END IF;
        IF amount > 0 THEN
            s.entries := concat_ws(',', s.entries, ropeway.entry(kinds[k], instant, NULL, jobs, details[k]));
            s.events := coalesce(s.events, 0) + amount;
        END IF;
    END LOOP;
END
$$;
