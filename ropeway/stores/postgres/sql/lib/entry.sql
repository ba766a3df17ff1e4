-- Formats one entry of the event stream.
-- Takes the move or notice, when, the state entered (or null), the jobs (json, comma separated), and details of all of
-- them (json).
-- Returns json.
CREATE OR REPLACE FUNCTION ropeway.entry(what text, at bigint, entered text, jobs text, detail text DEFAULT NULL)
RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT '["' || what || '",' || at || ',' || coalesce('"' || entered || '"', 'null') || ',['
        || coalesce(jobs, '') || '],' || coalesce(detail, 'null') || ']'
$$;
