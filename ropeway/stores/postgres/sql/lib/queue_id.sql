-- Makes sure that a queue exists.
-- Takes its name.
-- Returns its id.
CREATE OR REPLACE FUNCTION ropeway.queue_id(queue_name text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    found_id integer;
BEGIN
    LOOP
        SELECT queue.id INTO found_id FROM ropeway.queue WHERE queue.name = queue_name;
        EXIT WHEN FOUND;
        -- Waits for whoever makes it at the same time; a transaction of somebody else may stay open for long, so clients
        -- call this in one of their own first.
        INSERT INTO ropeway.queue (name) VALUES (queue_name) ON CONFLICT (name) DO NOTHING;
    END LOOP;
    RETURN found_id;
END
$$;
