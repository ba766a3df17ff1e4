-- Makes a queue if it does not exist.
-- Takes its name; or its name, # and its id, if the caller knows that it exists.
-- Returns its id.
CREATE OR REPLACE FUNCTION ropeway.queue_id(queue_name text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    known_id CONSTANT integer := nullif(split_part(queue_name, '#', 2), '');
    found_id integer;
BEGIN
    queue_name := split_part(queue_name, '#', 1);
    LOOP
        SELECT queue.id INTO found_id FROM ropeway.queue WHERE queue.name = queue_name;
        EXIT WHEN FOUND;
        BEGIN
            -- Waits for a call that makes it at the same time. A caller's transaction may stay open for long, so clients
            -- call this in a separate transaction first.
            INSERT INTO ropeway.queue (name) VALUES (queue_name) ON CONFLICT (name) DO NOTHING;
        EXCEPTION
            WHEN serialization_failure THEN
                -- It is there, but this transaction sees the tables as they were before.
                IF known_id IS NULL THEN
                    RAISE;
                END IF;
                RETURN known_id;
        END;
    END LOOP;
    RETURN found_id;
END
$$;
