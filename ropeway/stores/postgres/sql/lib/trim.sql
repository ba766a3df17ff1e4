-- Deletes what is kept for a limited time: events, metrics, revoked locks, expired records.
-- Takes the queue, how many events are kept, and the instant.
-- Returns whether there is more to delete.
CREATE OR REPLACE FUNCTION ropeway.trim(queue_id integer, events_kept integer, instant bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    amount integer;
    more boolean;
    ctids tid[];
BEGIN
    SELECT t.events INTO newest FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
    -- A step's number is that of its last event, so the newest step is always above this one.
    more := ropeway.delete_steps(queue_id, newest - events_kept, {{BATCH}}) = {{BATCH}};
    DELETE FROM ropeway.metric AS m WHERE m.queue = queue_id AND m.minute < instant - {{METRICS_KEPT}};
    DELETE FROM ropeway.revoked AS r WHERE r.number = ANY (ARRAY(
        SELECT old.number FROM ropeway.revoked AS old
        WHERE old.queue = queue_id AND old.at < instant - {{REVOKED_KEPT}}
        ORDER BY old.number
        LIMIT {{BATCH}}
    ));
    GET DIAGNOSTICS amount = ROW_COUNT;
    more := more OR amount = {{BATCH}};
    -- In a separate statement, as in `promote_due`.
    ctids := ARRAY(
        SELECT old.ctid FROM ropeway.record AS old
        WHERE old.expires_at <= instant
        ORDER BY old.expires_at
        LIMIT {{BATCH}}
        FOR UPDATE SKIP LOCKED
    );
    DELETE FROM ropeway.record AS r WHERE r.ctid = ANY (ctids);
    GET DIAGNOSTICS amount = ROW_COUNT;
    RETURN more OR amount = {{BATCH}};
END
$$;
