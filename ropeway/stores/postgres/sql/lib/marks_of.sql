-- Reads the marks of a job.
-- Takes its number in `mark`, and the newer marks in the row of its state.
-- Returns JSON: a list of lists, oldest first, each of an instant, and a name and a value for each mark that was written then
-- (value null: it was deleted); null if it has none.
CREATE OR REPLACE FUNCTION ropeway.marks_of(number_of_job bigint, newer text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT '[' || nullif(concat_ws(
        ',',
        (
            SELECT string_agg(json_build_array(m.at, m.name, m.value)::text, ',')
            FROM ropeway.mark AS m WHERE m.number = number_of_job
        ),
        newer
    ), '') || ']'
$$;
