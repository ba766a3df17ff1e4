-- Removes the oldest finished jobs beyond a count. Jobs that are kept for ever are neither counted nor removed.
-- Takes the step, the queue, the state, the count, and the instant.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.trim_finished(
    INOUT s ropeway.step, queue_id integer, of_state ropeway.state, keeps bigint, instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    ctids tid[];
    newest record;
    beyond bigint;
BEGIN
    IF keeps <= {{BATCH}} OR EXISTS (
        SELECT FROM ropeway.finished AS f WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NULL
    ) THEN
        SELECT f.finished_at, f.seq INTO newest FROM ropeway.finished AS f
        WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NOT NULL
        ORDER BY f.finished_at DESC, f.seq DESC
        OFFSET keeps LIMIT 1;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        ctids := ARRAY(
            SELECT f.ctid FROM ropeway.finished AS f
            WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NOT NULL
                AND (f.finished_at, f.seq) <= (newest.finished_at, newest.seq)
            ORDER BY f.finished_at, f.seq
            LIMIT {{BATCH}}
            FOR UPDATE SKIP LOCKED
        );
    ELSE
        -- Many are not counted but taken from the counters, by one call at a time: the next one sees what this one removed.
        IF NOT pg_try_advisory_xact_lock(hashtext('ropeway.retain'), queue_id) THEN
            RETURN;
        END IF;
        beyond := least(ropeway.count_finished(queue_id, of_state) - keeps, {{BATCH}});
        IF beyond <= 0 THEN
            RETURN;
        END IF;
        ctids := ARRAY(
            SELECT f.ctid FROM ropeway.finished AS f
            WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NOT NULL
            ORDER BY f.finished_at, f.seq
            LIMIT beyond
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    s := ropeway.drop_final(s, queue_id, ctids, instant);
END
$$;
