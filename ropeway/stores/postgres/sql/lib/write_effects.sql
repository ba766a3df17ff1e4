-- Writes what an add has done to jobs that hold its dedupe keys, behind the step of the add itself.
-- Takes the effects, the instant, and whether it may notify.
-- Returns the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.write_effects(done ropeway.effects, instant bigint, may_wake boolean) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    wakes text[] := '{}';
BEGIN
    IF done.news IS NOT NULL THEN
        done.steps[1] := ropeway.conclude(done.steps[1], done.queues[1], done.news, instant);
    END IF;
    FOR n IN 1 .. cardinality(done.queues) LOOP
        wakes := wakes || ropeway.write_step(done.steps[n], done.queues[n], instant, false, may_wake);
    END LOOP;
    PERFORM ropeway.revoke_locks(lost.queue, lost.ids, lost.tokens, 'cancelled', instant)
    FROM (
        SELECT each.queue, array_agg(each.id) AS ids, array_agg(each.token) AS tokens
        FROM unnest(done.revoked) AS each GROUP BY each.queue ORDER BY each.queue
    ) AS lost;
    RETURN wakes;
END
$$;
