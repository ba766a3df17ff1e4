-- Converts a JSON list to an array.
-- Takes JSON: a list of texts, numbers, booleans or nulls.
-- Returns the values as texts; null if it is no list.
CREATE OR REPLACE FUNCTION ropeway.texts_of_json(given json) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN json_typeof(given) = 'array' THEN ARRAY(SELECT json_array_elements_text(given)) END
$$;
