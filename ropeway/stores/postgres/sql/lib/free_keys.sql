-- Frees the dedupe keys of jobs that ended or were removed, and lets the jobs go on that wait for them. A key that is held for
-- a time stays, unless its job was removed before its end.
-- Takes the queues of the call and their steps, the news of the jobs, and the instant.
-- Returns the queues and steps.
CREATE OR REPLACE FUNCTION ropeway.free_keys(
    INOUT queues integer[], INOUT steps ropeway.step[], leaving ropeway.news[], instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    one record;
    hold ropeway.held_key;
    after record;
BEGIN
    -- In the order of keys, so that no two calls wait for each other. Keys that other jobs hold are not waited for.
    PERFORM FROM (
        SELECT given.queue, given.key, given.id FROM unnest(leaving) AS given
        WHERE given.key IS NOT NULL
        ORDER BY given.queue, given.key COLLATE "C"
    ) AS mine
    CROSS JOIN LATERAL (
        SELECT FROM ropeway.held_key AS k
        WHERE k.queue = mine.queue AND k.key = mine.key AND (k.holder = mine.id OR k.next = mine.id)
        FOR UPDATE
    ) AS held;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM ropeway.held_key AS k
    USING (
        -- LATERAL and LIMIT: each by its key, whatever the statistics of the table.
        SELECT held.row_ctid FROM unnest(leaving) AS given
        CROSS JOIN LATERAL (
            SELECT own.ctid AS row_ctid FROM ropeway.held_key AS own
            WHERE own.queue = given.queue AND own.key = given.key AND own.holder = given.id AND own.next IS NULL
                AND (own.until IS NULL OR given.ended = '{{CHILD_REMOVED}}')
            LIMIT 1
        ) AS held
    ) AS freed
    WHERE k.ctid = freed.row_ctid;
    FOR one IN
        SELECT given.queue, given.key, given.id FROM unnest(leaving) AS given
        CROSS JOIN LATERAL (
            SELECT FROM ropeway.held_key AS own
            WHERE own.queue = given.queue AND own.key = given.key AND own.next IS NOT NULL
                AND (own.holder = given.id OR own.next = given.id)
            LIMIT 1
        ) AS held
    LOOP
        -- The holder and the next one may both have ended.
        SELECT k.* INTO hold FROM ropeway.held_key AS k WHERE k.queue = one.queue AND k.key = one.key;
        IF hold.next = one.id THEN
            UPDATE ropeway.held_key AS k SET next = NULL WHERE k.queue = one.queue AND k.key = one.key;
        ELSIF hold.next IS NULL THEN
            DELETE FROM ropeway.held_key AS k WHERE k.queue = one.queue AND k.key = one.key AND k.holder = one.id;
        ELSE
            UPDATE ropeway.held_key AS k SET next = NULL, holder = k.next WHERE k.queue = one.queue AND k.key = one.key;
            after := ropeway.start_next(queues, steps, one.queue, hold.next, instant);
            queues := after.queues;
            steps := after.steps;
        END IF;
    END LOOP;
END
$$;
