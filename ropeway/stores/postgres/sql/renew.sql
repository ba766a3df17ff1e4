-- Extends locks. No index changes: the row stays on its page.
-- Takes the queue, ids and tokens, how long the locks last from now, and the instant.
-- Returns two letters for each (the verdict and the state), or null if all were held.
CREATE OR REPLACE FUNCTION ropeway.renew(
    queue_name text, ids text[], tokens text[], lock bigint, at bigint DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    queue_id integer;
    renewed integer;
BEGIN
    -- Not worth waiting for the disk: a renewal that a crash of the server takes back is made again in time.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    -- In the order of ids, as in all calls. In a separate statement: one that waited for another update locks the new row,
    -- but its snapshot of the table is older.
    PERFORM FROM (SELECT * FROM unnest(ids, tokens) AS each (id, token) ORDER BY each.id COLLATE "C") AS given
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.active AS own
        WHERE own.queue = queue_id AND own.id = given.id AND own.token = given.token
        FOR UPDATE
    ) AS held;
    UPDATE ropeway.active AS a SET lock_until = instant + lock, renewed_at = instant
    FROM unnest(ids, tokens) AS given (id, token)
    WHERE a.queue = queue_id AND a.id = given.id AND a.token = given.token;
    GET DIAGNOSTICS renewed = ROW_COUNT;
    IF renewed = cardinality(ids) THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT string_agg(ropeway.answer_not_held(queue_id, given.id, given.token, NULL), '' ORDER BY given.n)
        FROM unnest(ids, tokens) WITH ORDINALITY AS given (id, token, n)
    );
END
$$;
