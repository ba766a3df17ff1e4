-- Wakes whoever listens to a topic of a queue. Listeners hold a shared lock on it, so one that cannot be had alone says
-- that somebody is there; it is given back at once, and nobody ever waits for it.
-- Takes the queue's id, the topic ('jobs', 'events', 'revoked'), and whether it may: null sends it unseen.
-- Returns null if nobody listens, else the topic and the id behind a + (woken) or a - (not allowed).
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
