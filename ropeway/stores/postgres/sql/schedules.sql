-- Reads schedules of a queue.
-- Takes the queue, and either ids, or an id (null: from the first on) and how many at most to read behind it.
-- Returns a row for each that exists, in the order of the ids given, or else of all ids: id, value, next_at and version.
CREATE OR REPLACE FUNCTION ropeway.schedules(queue_name text, ids text[], after text, most bigint)
RETURNS TABLE (id text, value text, next_at bigint, version bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    queue_id CONSTANT integer := (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name);
BEGIN
    IF ids IS NOT NULL THEN
        RETURN QUERY
        SELECT e.id, e.value, e.next_at, e.version FROM unnest(ids) WITH ORDINALITY AS given (id, n)
        JOIN ropeway.schedule AS e ON e.queue = queue_id AND e.id = given.id
        ORDER BY given.n;
    ELSE
        RETURN QUERY
        SELECT e.id, e.value, e.next_at, e.version FROM ropeway.schedule AS e
        WHERE e.queue = queue_id AND e.id > coalesce(after, '')
        ORDER BY e.id
        LIMIT most;
    END IF;
END
$$;
