-- Ends a subscription of `listen`.
-- Takes the queue's id and the topic.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.unlisten(queue_id integer, topic text) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_unlock_shared(hashtext('ropeway.' || topic), queue_id)
$$;
