-- Locks jobs of any state until the call ends.
-- Takes the queue and ids.
-- Returns the ids of those that exist. They stay as `whole_job` shows them; jobs that are added later are not locked.
CREATE OR REPLACE FUNCTION ropeway.lock_jobs(queue_id integer, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    held text[];
    astray text;
BEGIN
    LOOP
        IF cardinality(ids) = 1 THEN
            held := ropeway.lock_jobs_once(queue_id, ids);
        ELSE
            BEGIN
                held := ropeway.lock_jobs_once(queue_id, ids);
                IF held IS NULL THEN
                    -- Releases the locks it got: locking an earlier table while they are held could deadlock.
                    RAISE serialization_failure;
                END IF;
            EXCEPTION
                WHEN serialization_failure THEN
                    NULL;
            END;
        END IF;
        IF held IS NOT NULL THEN
            RETURN held;
        END IF;
        -- One statement sees every job in some table, also one that is being moved. A job in none of them is damaged.
        SELECT j.id INTO astray FROM ropeway.job AS j
        WHERE j.queue = queue_id AND j.id = ANY (ids)
            AND NOT EXISTS (SELECT FROM ropeway.active AS a WHERE a.queue = j.queue AND a.id = j.id)
            AND NOT EXISTS (
                SELECT FROM ropeway.waiting AS w WHERE w.queue = j.queue AND w.priority = j.priority AND w.ord = j.ord
            )
            AND NOT EXISTS (SELECT FROM ropeway.later AS l WHERE l.queue = j.queue AND l.id = j.id)
            AND NOT EXISTS (SELECT FROM ropeway.finished AS f WHERE f.queue = j.queue AND f.id = j.id)
        LIMIT 1;
        IF FOUND THEN
            PERFORM ropeway.raise_no_state(astray);
        END IF;
    END LOOP;
END
$$;
