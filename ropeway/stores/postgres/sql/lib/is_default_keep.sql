-- Whether the age and count of a retention are those of jobs that say nothing about it.
-- Takes both (null: no limit).
-- Returns a boolean.
CREATE OR REPLACE FUNCTION ropeway.is_default_keep(age bigint, count bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT ({{IS_DEFAULT_KEEP}}) IS TRUE
$$;
