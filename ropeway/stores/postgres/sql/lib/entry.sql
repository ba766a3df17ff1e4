-- One entry of the stream of events, as text.
-- Takes what happened, when, the state entered (or null), the jobs (json, comma separated), what they have in common (json).
-- Returns json.
CREATE OR REPLACE FUNCTION ropeway.entry(what text, at bigint, entered text, jobs text, detail text DEFAULT NULL)
RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT '["' || what || '",' || at || ',' || coalesce('"' || entered || '"', 'null') || ',['
        || coalesce(jobs, '') || '],' || coalesce(detail, 'null') || ']'
$$;
