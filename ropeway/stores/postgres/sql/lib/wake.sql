-- Notifies the listeners to a topic of a queue, if there are any. Each holds a shared advisory lock, so an exclusive
-- lock that cannot be acquired means that there is a listener; it is only tried, and released at once.
-- Takes the queue's id, the topic ('jobs', 'events', 'revoked'), and whether it may notify (null: without looking for
-- listeners).
-- Returns null if there is no listener; else topic:id behind a + (notified) or a - (it was not allowed to).
CREATE OR REPLACE FUNCTION ropeway.wake(queue_id integer, topic text, may boolean) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    -- In one expression, which costs a fraction of a statement.
    IF
        may IS NOT NULL AND pg_try_advisory_lock(hashtext('ropeway.' || topic), queue_id)
        AND pg_advisory_unlock(hashtext('ropeway.' || topic), queue_id)
    THEN
        RETURN NULL;
    END IF;
    IF may IS FALSE THEN
        RETURN '-' || topic || ':' || queue_id;
    END IF;
    PERFORM pg_notify('ropeway.wake', topic || ':' || queue_id);
    RETURN '+' || topic || ':' || queue_id;
END
$$;
