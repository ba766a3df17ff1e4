-- Reads a queue's stream.

-- statement: page
-- Takes :first and :last (ids), :limit. Returns a list of id and body.
SELECT CAST(json_group_array(json_array(id, body)) AS BLOB)
FROM (SELECT id, body FROM event WHERE id BETWEEN :first AND :last ORDER BY id LIMIT :limit);

-- statement: page_back
-- The same from the newest to older ones.
SELECT CAST(json_group_array(json_array(id, body)) AS BLOB)
FROM (SELECT id, body FROM event WHERE id BETWEEN :first AND :last ORDER BY id DESC LIMIT :limit);

-- statement: exists
SELECT 1 FROM event WHERE id = :id;

-- statement: oldest
-- Takes :first and :last (ids). Returns the id of the oldest entry there.
SELECT id FROM event WHERE id BETWEEN :first AND :last ORDER BY id LIMIT 1;

-- statement: entry_from
-- Takes :first and :last (ids). Returns id and body of the oldest entry there.
SELECT id, CAST(body AS BLOB) FROM event WHERE id BETWEEN :first AND :last ORDER BY id LIMIT 1;

-- statement: replace
UPDATE event SET body = :body WHERE id = :id;

-- statement: revoked
-- Takes :queue, :after. Returns a list of number, id, token and why.
SELECT CAST(json_group_array(json_array(number, id, token, why)) AS BLOB)
FROM (SELECT number, id, token, why FROM revoked WHERE queue = :queue AND number > :after ORDER BY number);

-- statement: newest_revoked
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'revoked'), 0);
