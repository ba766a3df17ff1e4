-- Forgets a small record.
-- Takes its kind and key.
-- Returns whether there was one.
CREATE OR REPLACE FUNCTION ropeway.forget(of_kind text, of_key text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM ropeway.record AS r WHERE r.kind = of_kind AND r.key = of_key;
    RETURN FOUND;
END
$$;
