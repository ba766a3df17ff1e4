-- The store's clock.
-- Takes an instant to use instead, or null.
-- Returns whole milliseconds since 1970.
CREATE OR REPLACE FUNCTION ropeway.clock(at bigint DEFAULT NULL) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(at, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;
