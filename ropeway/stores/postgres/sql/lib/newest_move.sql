-- What the newest entry of a queue's stream tells of.
-- Takes the queue, and the number of its newest event.
-- Returns the name of a move or a notice; null if there is no entry, or if it is damaged.
CREATE OR REPLACE FUNCTION ropeway.newest_move(queue_id integer, newest bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT told.entry ->> 0
        FROM ropeway.step, json_array_elements(('[' || step.entries || ']')::json) WITH ORDINALITY AS told (entry, n)
        WHERE step.queue = queue_id AND step.number = newest AND step.events > 0
        ORDER BY told.n DESC
        LIMIT 1
    );
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;
