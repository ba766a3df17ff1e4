-- Settles attempts one by one, in order: those that did not simply complete.
-- Takes the step, the queue, arrays of what `settle_one` takes (how long they are kept as an age and a count), and the instant.
-- Returns the step, the letters of all, how many went back to waiting or delayed, and of the finished ones what `retain` needs.
CREATE OR REPLACE FUNCTION ropeway.settle_others(
    INOUT s ropeway.step, queue_id integer, ids text[], tokens text[], moves text[], results text[], reasons text[],
    traces text[], delays bigint[], ages bigint[], counts bigint[], exhausted boolean[], stack_traces integer[],
    instant bigint, OUT letters text, OUT back integer,
    OUT completed text[], OUT completed_at_once text[], OUT completed_count bigint,
    OUT failed text[], OUT failed_at_once text[], OUT failed_count bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    one record;
BEGIN
    letters := '';
    back := 0;
    -- All locks in the order of ids, so that nobody waits for one who waits for us.
    PERFORM FROM unnest(ids, tokens) AS given (id, token)
    JOIN ropeway.active AS a ON a.queue = queue_id AND a.id = given.id AND a.token = given.token
    ORDER BY a.id FOR UPDATE OF a;
    FOR n IN 1 .. cardinality(ids) LOOP
        one := ropeway.settle_one(
            s, queue_id, ids[n], tokens[n], moves[n], results[n], reasons[n], traces[n], delays[n],
            ropeway.expiry(instant, ages[n], counts[n]), exhausted[n], stack_traces[n],
            instant
        );
        s := one.s;
        letters := letters || one.letters;
        IF one.entered = 'completed' THEN
            completed := completed || ids[n];
            IF ages[n] = 0 OR counts[n] = 0 THEN
                completed_at_once := completed_at_once || ids[n];
            ELSE
                completed_count := least(completed_count, counts[n]);
            END IF;
        ELSIF one.entered = 'failed' THEN
            failed := failed || ids[n];
            IF ages[n] = 0 OR counts[n] = 0 THEN
                failed_at_once := failed_at_once || ids[n];
            ELSE
                failed_count := least(failed_count, counts[n]);
            END IF;
        ELSIF one.entered IS NOT NULL THEN
            back := back + 1;
        END IF;
    END LOOP;
END
$$;
