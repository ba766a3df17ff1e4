-- Notifies the listeners to a topic of a queue, if there are any. Each holds a shared advisory lock, so an exclusive
-- lock that cannot be acquired means that there is a listener; it is only tried, and released at once.
-- Takes the queue's id, the topic ('jobs', 'events', 'revoked', 'schedules'), whether it may notify (null: without looking for
-- listeners), and whether jobs came into line ahead of others that may be claimed already (`scan_starts.py`).
-- Returns null if there is no listener; else topic:id, or topic:id:ahead, behind a + (notified) or a - (it was not allowed
-- to).
CREATE OR REPLACE FUNCTION ropeway.wake(queue_id integer, topic text, may boolean, is_ahead boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    payload text;
BEGIN
    -- In one expression, which costs a fraction of a statement.
    IF
        may IS NOT NULL AND pg_try_advisory_lock(hashtext('ropeway.' || topic), queue_id)
        AND pg_advisory_unlock(hashtext('ropeway.' || topic), queue_id)
    THEN
        RETURN NULL;
    END IF;
    payload := topic || ':' || queue_id || CASE WHEN is_ahead THEN ':ahead' ELSE '' END;
    IF may IS FALSE THEN
        RETURN '-' || payload;
    END IF;
    PERFORM pg_notify('ropeway.wake', payload);
    RETURN '+' || payload;
END
$$;
