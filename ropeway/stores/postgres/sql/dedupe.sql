-- Reads who holds a dedupe key.
-- Takes the queue, the key, and the instant.
-- Returns no row if it is free; else the job that holds it, until when, and the job that waits for its end.
CREATE OR REPLACE FUNCTION ropeway.dedupe(queue_name text, wanted text, at bigint DEFAULT NULL)
RETURNS TABLE (holder text, until bigint, next text)
LANGUAGE sql STABLE AS $$
    SELECT k.holder, k.until, k.next FROM ropeway.held_key AS k
    WHERE k.queue = (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name) AND k.key = wanted
        AND (k.until <= ropeway.clock(at)) IS NOT TRUE
$$;
