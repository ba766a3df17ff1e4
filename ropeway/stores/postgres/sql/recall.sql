-- Reads small records that have not expired.
-- Takes their kind, a key (null: all), and the instant.
-- Returns key, value, version and expires_at, in the order of keys.
CREATE OR REPLACE FUNCTION ropeway.recall(of_kind text, of_key text, at bigint DEFAULT NULL)
RETURNS TABLE (key text, value text, version bigint, expires_at bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    instant bigint := ropeway.clock(at);
BEGIN
    RETURN QUERY
    SELECT r.key, r.value, r.version, r.expires_at FROM ropeway.record AS r
    WHERE r.kind = of_kind AND (of_key IS NULL OR r.key = of_key) AND (r.expires_at IS NULL OR r.expires_at > instant)
    ORDER BY r.key;
END
$$;
