-- Small versioned records.

-- statement: recall
-- Takes :kind, :key (or null for all), :now.
SELECT CAST(json_group_array(
    json_object('kind', kind, 'key', key, 'value', value, 'version', version, 'expires_at', expires_at)
) AS BLOB)
FROM (
    SELECT * FROM record
    WHERE kind = :kind AND (:key IS NULL OR key = :key) AND (expires_at IS NULL OR expires_at > :now)
    ORDER BY key
);

-- statement: remember
INSERT INTO record (kind, key, value, version, expires_at)
VALUES (:kind, :key, :value, :version, :expires_at)
ON CONFLICT DO UPDATE SET
    value = excluded.value,
    version = excluded.version,
    expires_at = excluded.expires_at;

-- statement: forget
-- Takes :kind, :key, :now. Returns whether it had not expired.
DELETE FROM record WHERE kind = :kind AND key = :key RETURNING expires_at IS NULL OR expires_at > :now;
