-- Writes schedules of a queue, in the order given, with the jobs that their ticks make.
-- Takes the queue, and for each write the schedule's id, value (null: it is removed), next_at, the version that it must have
-- now (null: any; 0: none), the jobs to add (json, the parameters of `add` by name; null: none), and the ids of jobs to remove
-- (json, a list; null: none); the instant, and whether it may notify.
-- Returns for each write whether it was done, the schedule as it is now (value, next_at and version; nulls: there is none), and
-- the answer of `add` (null: nothing was to be added); and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.write_schedules(
    queue_name text, ids text[], new_values text[], new_times bigint[], expected bigint[], adds text[], removes text[],
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL, OUT are_done boolean[], OUT stored_values text[],
    OUT times bigint[], OUT versions bigint[], OUT added text[], OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    queue_id integer := ropeway.queue_id(queue_name);
    lock_timeout CONSTANT text := current_setting('lock_timeout');
    s ropeway.step;
    old ropeway.schedule;
    gone record;
    news ropeway.news[];
    lowest bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.schedules.turn'), queue_id);
    -- Of all writes, before any of them locks anything else.
    PERFORM ropeway.lock_with_holders(
        queue_id, ARRAY(SELECT json_array_elements_text(given.ids::json) FROM unnest(removes) AS given (ids)),
        array_agg(queue_name), array_agg(job.key), array_agg(job.mode)
    )
    FROM unnest(adds) AS given (jobs)
    CROSS JOIN LATERAL unnest(
        ropeway.texts_of_json(given.jobs::json -> 'keys'), ropeway.texts_of_json(given.jobs::json -> 'modes')
    ) AS job (key, mode);
    -- What has changed since is locked in another order than that of all calls.
    PERFORM set_config('lock_timeout', '{{BRIEFLY}}', true);
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT e.* INTO old FROM ropeway.schedule AS e WHERE e.queue = queue_id AND e.id = ids[n];
        are_done[n] := expected[n] IS NULL OR expected[n] = coalesce(old.version, 0);
        added[n] := NULL;
        IF NOT are_done[n] THEN
            stored_values[n] := old.value;
            times[n] := old.next_at;
            versions[n] := old.version;
            CONTINUE;
        END IF;
        stored_values[n] := new_values[n];
        times[n] := CASE WHEN new_values[n] IS NOT NULL THEN new_times[n] END;
        versions[n] := CASE WHEN new_values[n] IS NOT NULL THEN coalesce(old.version, 0) + 1 END;
        IF new_values[n] IS NULL THEN
            DELETE FROM ropeway.schedule AS e WHERE e.queue = queue_id AND e.id = ids[n];
        ELSE
            INSERT INTO ropeway.schedule (queue, id, value, next_at, version)
            VALUES (queue_id, ids[n], stored_values[n], times[n], versions[n])
            ON CONFLICT (queue, id) DO UPDATE SET
                value = excluded.value, next_at = excluded.next_at, version = excluded.version;
        END IF;
        IF adds[n] IS NOT NULL THEN
            IF s.events > 0 THEN
                -- What earlier writes removed has freed its ids and keys, and is announced before what takes them.
                IF news IS NOT NULL THEN
                    s := ropeway.conclude(s, queue_id, news, instant, NULL, lowest);
                    news := NULL;
                    -- Less than all families: from here on the call waits for none.
                    lowest := 0;
                END IF;
                wakes := wakes || ropeway.write_step(s, queue_id, instant, false, may_wake);
                s := NULL;
            END IF;
            added[n] := ropeway.add_json(adds[n], instant);
        END IF;
        IF removes[n] IS NOT NULL THEN
            gone := ropeway.remove_unstarted(
                s, queue_id, ARRAY(SELECT json_array_elements_text(removes[n]::json)), instant,
                news IS NULL AND lowest IS NULL
            );
            s := gone.s;
            news := news || gone.news;
            lowest := least(lowest, gone.lowest);
        END IF;
    END LOOP;
    PERFORM set_config('lock_timeout', lock_timeout, true);
    IF news IS NOT NULL THEN
        s := ropeway.conclude(s, queue_id, news, instant, NULL, lowest);
    END IF;
    wakes := wakes || ropeway.write_step(s, queue_id, instant, false, may_wake);
    IF true = ANY (are_done) THEN
        wakes := array_remove(array_append(wakes, ropeway.wake(queue_id, 'schedules', may_wake)), NULL);
    END IF;
END
$$;
