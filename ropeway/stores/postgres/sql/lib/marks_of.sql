-- Reads the marks of a job.
-- Takes its number in `mark`.
-- Returns JSON: a list of name, value and time of each, by name; null if it has none.
CREATE OR REPLACE FUNCTION ropeway.marks_of(number_of_job bigint) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT json_agg(json_build_array(m.name, m.value, m.at) ORDER BY m.name) FROM ropeway.mark AS m WHERE m.number = number_of_job
$$;
