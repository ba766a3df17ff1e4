-- Reads marks in the row of a job's state.
-- Takes the text (see `write_held`).
-- Returns of each name the newest: when it was written, and its value (null: it was deleted).
CREATE OR REPLACE FUNCTION ropeway.marks_in(given text) RETURNS TABLE (at bigint, name text, value text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT DISTINCT ON (each.name COLLATE "C") each.at, each.name, each.value
    FROM (
        SELECT written.n, place, (written.list ->> 0)::bigint, written.list ->> place, written.list ->> place + 1
        FROM json_array_elements(('[' || given || ']')::json) WITH ORDINALITY AS written (list, n)
        CROSS JOIN generate_series(1, json_array_length(written.list) - 2, 2) AS place
    ) AS each (n, place, at, name, value)
    ORDER BY each.name COLLATE "C", each.n DESC, each.place DESC
$$;
