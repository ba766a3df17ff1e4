-- Locks jobs wherever they stand, until the call ends.
-- Takes the queue and ids.
-- Returns the ids of those that are there. They stay as `place` shows them next; others may have been added since, and are not held.
CREATE OR REPLACE FUNCTION ropeway.hold(queue_id integer, ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    held text[];
BEGIN
    LOOP
        IF cardinality(ids) = 1 THEN
            held := ropeway.hold_once(queue_id, ids);
        ELSE
            BEGIN
                held := ropeway.hold_once(queue_id, ids);
                IF held IS NULL THEN
                    -- Lets go of what it got: to go back for others with that in hand could end in a wait in a circle.
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
    END LOOP;
END
$$;
