-- Subscribes this session to a topic of a queue, until `unlisten` or its end.
-- Takes the queue and the topic.
-- Returns the queue's id, which notifications contain.
CREATE OR REPLACE FUNCTION ropeway.listen(queue_name text, topic text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    queue_id integer := ropeway.queue_id(queue_name);
BEGIN
    PERFORM pg_advisory_lock_shared(hashtext('ropeway.' || topic), queue_id);
    RETURN queue_id;
END
$$;
