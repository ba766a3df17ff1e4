-- Reads which move or notice the newest entry of a queue is.
-- Takes the queue, and the number of its newest event.
-- Returns its name; null if there is no entry, or if it is damaged.
CREATE OR REPLACE FUNCTION ropeway.newest_entry(queue_id integer, newest bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT each.entry ->> 0
        FROM ropeway.step, json_array_elements(('[' || step.entries || ']')::json) WITH ORDINALITY AS each (entry, n)
        WHERE step.queue = queue_id AND step.number = newest AND step.events > 0
        ORDER BY each.n DESC
        LIMIT 1
    );
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;
