-- Locks dedupe keys together with the jobs that hold them, and those that wait for these: jobs first, as all calls do. So a
-- key is read, then its jobs are locked, then the key, and if it is another one by then, all locks are released.
-- Takes the queue and the keys.
-- Returns nothing. The keys that are held, and the states of these jobs, stay as they are.
CREATE OR REPLACE FUNCTION ropeway.lock_keys(queue_id integer, keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    wanted CONSTANT text[] := ARRAY(SELECT DISTINCT given.key COLLATE "C" FROM unnest(keys) AS given (key) ORDER BY 1);
    seen text[];
    seen_again text[];
    ids text[];
    held text[];
BEGIN
    FOR try IN 1 .. 100 LOOP
        SELECT array_agg(concat_ws(' ', k.holder, k.next, k.key)), array_agg(k.holder) || array_agg(k.next) INTO seen, ids
        FROM unnest(wanted) AS given (key)
        CROSS JOIN LATERAL (
            SELECT own.* FROM ropeway.held_key AS own WHERE own.queue = queue_id AND own.key = given.key OFFSET 0
        ) AS k;
        IF seen IS NULL THEN
            RETURN;
        END IF;
        ids := array_remove(ids, NULL);
        BEGIN
            held := ropeway.lock_jobs_once(queue_id, ids);
            seen_again := ARRAY(
                SELECT concat_ws(' ', k.holder, k.next, k.key) FROM unnest(wanted) AS given (key)
                CROSS JOIN LATERAL (
                    SELECT own.* FROM ropeway.held_key AS own WHERE own.queue = queue_id AND own.key = given.key FOR UPDATE
                ) AS k
            );
            IF held IS NOT NULL AND seen_again = seen THEN
                RETURN;
            END IF;
            RAISE SQLSTATE 'RW001';
        EXCEPTION
            WHEN SQLSTATE 'RW001' THEN
                NULL;
        END;
    END LOOP;
    RAISE serialization_failure USING MESSAGE = 'jobs that hold dedupe keys were moved again and again';
END
$$;
