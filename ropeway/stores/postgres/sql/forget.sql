-- Deletes a small record.
-- Takes its kind and key.
-- Returns whether there was one that had not expired.
CREATE OR REPLACE FUNCTION ropeway.forget(of_kind text, of_key text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    expires_at bigint;
BEGIN
    -- As in `remember`: a call that compares the version must see all of this, or none.
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.record'), hashtext(of_kind || ':' || of_key));
    DELETE FROM ropeway.record AS r WHERE r.kind = of_kind AND r.key = of_key RETURNING r.expires_at INTO expires_at;
    RETURN FOUND AND (expires_at IS NULL OR expires_at > ropeway.clock());
END
$$;
