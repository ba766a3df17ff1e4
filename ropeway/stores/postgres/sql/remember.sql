-- Writes a small record.
-- Takes its kind, key and value, the version it must have now (null: any; 0: none), how long it lasts (null: for ever), and the
-- instant.
-- Returns whether it was written, and the record as it is now: value, version, expires_at (nulls: there is none).
CREATE OR REPLACE FUNCTION ropeway.remember(
    of_kind text, of_key text, new_value text, expected bigint, lasting bigint, at bigint DEFAULT NULL,
    OUT is_done boolean, OUT value text, OUT version bigint, OUT expires_at bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    old ropeway.record;
    stored bigint;
BEGIN
    -- Also where there is no row to lock.
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.record'), hashtext(of_kind || ':' || of_key));
    SELECT r.* INTO old FROM ropeway.record AS r WHERE r.kind = of_kind AND r.key = of_key;
    IF old.expires_at <= instant THEN
        old := NULL;
    END IF;
    stored := coalesce(old.version, 0);
    is_done := expected IS NULL OR expected = stored;
    IF NOT is_done THEN
        value := old.value;
        version := old.version;
        expires_at := old.expires_at;
        RETURN;
    END IF;
    value := new_value;
    version := stored + 1;
    expires_at := instant + lasting;
    INSERT INTO ropeway.record (kind, key, value, version, expires_at)
    VALUES (of_kind, of_key, remember.value, remember.version, remember.expires_at)
    ON CONFLICT (kind, key) DO UPDATE SET
        value = excluded.value, version = excluded.version, expires_at = excluded.expires_at;
END
$$;
