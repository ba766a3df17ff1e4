-- Takes the dedupe keys of new jobs, in their order, and drops those whose key another job holds.
--
-- A held key is a row, so of two adds of one key the second waits for the commit of the first. Most keys are free: they are
-- inserted by one statement, in their order. The others are taken one by one. Where only an end of the holder can change what
-- an add has to do, reading the key is enough; other modes lock the holder first, and then the key (`lock_keys`). A call that
-- ends the holder locks the job and then the key, too (`free_keys`).
--
-- Takes the letter of each job (c: to be created), the first and last of the jobs that it concerns, for each job its queue,
-- sequence number, id, name, data, priority, lifo, delay, due_at, extras, key, mode and ttl; the flow, the position of its
-- set of parents, and whether it has children (see `flow_parents`); the effects of the call, and the instant.
-- Returns the letters (p: created, and its state's row is inserted; d: deduplicated; s: all its parents were dropped), delays
-- and dues as they are now, for each job that was deduplicated the id of the one that holds its key, and the effects.
CREATE OR REPLACE FUNCTION ropeway.take_keys(
    INOUT letters text[], first integer, last integer, queue_of integer[], seqs bigint[], ids text[], names text[],
    datas text[], priorities integer[], lifos boolean[], INOUT delays bigint[], INOUT dues bigint[], extras text[], keys text[],
    modes text[], ttls bigint[], flow json, sets integer[], are_parents boolean[], INOUT holders text[],
    INOUT done ropeway.effects, instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    lock_timeout CONSTANT text := current_setting('lock_timeout');
    has_locking CONSTANT boolean := modes && ARRAY[{{LOCKING_MODES}}];
    is_last CONSTANT boolean := last = cardinality(ids);
    keyed integer;
    others integer;
    at integer;
    alike record;
    taken record;
    dropped integer[];
    dropped_sets integer[] := '{}';
BEGIN
    IF first > 1 OR NOT is_last OR 'c' <> ANY (letters) THEN
        -- Only of those that are to be created.
        SELECT array_agg(CASE WHEN given.letter = 'c' AND given.n BETWEEN first AND last THEN given.key END ORDER BY given.n)
        INTO keys
        FROM unnest(letters, keys) WITH ORDINALITY AS given (letter, key, n);
    END IF;
    keyed := cardinality(array_remove(keys, NULL));
    IF keyed = 0 THEN
        RETURN;
    END IF;
    IF has_locking AND keyed > 1 THEN
        -- All jobs that it needs, in the order of all calls, before it holds any key.
        FOR alike IN
            SELECT given.queue, array_agg(given.key) AS keys FROM unnest(queue_of, keys, modes) AS given (queue, key, mode)
            WHERE given.key IS NOT NULL AND given.mode IN ({{LOCKING_MODES}})
            GROUP BY given.queue
            ORDER BY given.queue
        LOOP
            PERFORM ropeway.lock_keys(alike.queue, alike.keys);
        END LOOP;
    END IF;
    IF flow IS NULL THEN
        BEGIN
            -- Half as dear as with ON CONFLICT.
            INSERT INTO ropeway.held_key (until, queue, key, holder)
            SELECT CASE WHEN given.mode = '{{MODE_THROTTLE}}' THEN instant + given.ttl END, given.queue, given.key, given.id
            FROM unnest(queue_of, ids, keys, modes, ttls) AS given (queue, id, key, mode, ttl)
            WHERE given.key IS NOT NULL
            ORDER BY given.queue, given.key COLLATE "C";
            IF is_last THEN
                RETURN;
            END IF;
        EXCEPTION
            WHEN unique_violation THEN
                NULL;
        END;
        INSERT INTO ropeway.held_key (until, queue, key, holder)
        SELECT CASE WHEN given.mode = '{{MODE_THROTTLE}}' THEN instant + given.ttl END, given.queue, given.key, given.id
        FROM unnest(queue_of, ids, keys, modes, ttls) WITH ORDINALITY AS given (queue, id, key, mode, ttl, n)
        WHERE given.key IS NOT NULL
        ORDER BY given.queue, given.key COLLATE "C", given.n
        ON CONFLICT DO NOTHING;
    END IF;
    -- o: its key is neither its own nor simply found.
    SELECT
        array_agg(
            CASE
                WHEN given.key IS NULL OR hold.is_own THEN given.letter
                WHEN hold.is_found THEN 'd'
                ELSE 'o'
            END
            ORDER BY given.n
        ),
        array_agg(CASE WHEN hold.is_found AND NOT hold.is_own THEN hold.holder ELSE given.holder END ORDER BY given.n),
        count(*) FILTER (WHERE given.key IS NOT NULL AND (hold.is_found OR hold.is_own) IS NOT TRUE)
    INTO letters, holders, others
    FROM unnest(letters, holders, queue_of[1:cardinality(letters)], ids[1:cardinality(letters)], keys,
        modes[1:cardinality(letters)], ttls[1:cardinality(letters)])
        WITH ORDINALITY AS given (letter, holder, queue, id, key, mode, ttl, n)
    LEFT JOIN LATERAL (
        -- By its key, whatever the statistics of the table.
        SELECT
            k.holder, NOT has_locking AND flow IS NULL AND (k.until <= instant) IS NOT TRUE AS is_found,
            -- Not if a job of this id had it before, and is gone.
            k.holder = given.id
            AND k.until IS NOT DISTINCT FROM CASE WHEN given.mode = '{{MODE_THROTTLE}}' THEN instant + given.ttl END AS is_own
        FROM ropeway.held_key AS k
        WHERE k.queue = given.queue AND k.key = given.key
        LIMIT 1
    ) AS hold ON true;
    IF others > 0 OR NOT is_last THEN
        -- What another job of the call may find has to be there.
        FOR alike IN
            SELECT own.n FROM unnest(letters, queue_of, keys) WITH ORDINALITY AS own (letter, queue, key, n)
            WHERE own.letter = 'c' AND own.key IS NOT NULL AND (NOT is_last OR (own.queue, own.key) IN (
                SELECT given.queue, given.key FROM unnest(letters, queue_of, keys) AS given (letter, queue, key)
                WHERE given.letter = 'o'
            ))
        LOOP
            PERFORM ropeway.place_job(
                queue_of[alike.n], seqs[alike.n], lifos[alike.n], priorities[alike.n], ids[alike.n], names[alike.n],
                delays[alike.n], dues[alike.n], false, extras[alike.n], instant
            );
            letters[alike.n] := 'p';
        END LOOP;
        IF keyed > 1 THEN
            -- What has changed since is locked in another order than that of all calls.
            PERFORM set_config('lock_timeout', '{{BRIEFLY}}', true);
        END IF;
        FOR n IN first .. last LOOP
            IF sets[n] = ANY (dropped_sets) THEN
                letters[n] := 's';
            ELSIF letters[n] = 'o' THEN
                taken := ropeway.take_key(
                    done, queue_of[n], ids[n], names[n], datas[n], keys[n], modes[n], ttls[n], instant
                );
                done := taken.done;
                letters[n] := CASE WHEN taken.found_id IS NULL THEN 'p' ELSE 'd' END;
                holders[n] := taken.found_id;
                IF taken.follows THEN
                    delays := coalesce(delays, array_fill(0::bigint, ARRAY[cardinality(ids)]));
                    delays[n] := 0;
                    dues := coalesce(dues, array_fill(NULL::bigint, ARRAY[cardinality(ids)]));
                    dues[n] := {{LAST_INSTANT}};
                END IF;
                IF taken.found_id IS NULL THEN
                    PERFORM ropeway.place_job(
                        queue_of[n], seqs[n], lifos[n], priorities[n], ids[n], names[n], delays[n], dues[n], are_parents[n],
                        extras[n], instant
                    );
                END IF;
            END IF;
            IF letters[n] IN ('d', 's') AND are_parents[n] THEN
                dropped_sets := ARRAY(
                    SELECT (one ->> 0)::integer FROM json_array_elements(flow -> 'parents_at') AS one
                    GROUP BY 1
                    HAVING bool_and(coalesce(letters[(one ->> 3)::integer] IN ('d', 's'), false))
                );
            END IF;
        END LOOP;
        PERFORM set_config('lock_timeout', lock_timeout, true);
    END IF;
    dropped := ARRAY(
        SELECT given.n FROM unnest(letters) WITH ORDINALITY AS given (letter, n)
        WHERE given.letter IN ('d', 's') AND given.n BETWEEN first AND last
    );
    DELETE FROM ropeway.job AS j
    USING (
        SELECT own.row_ctid FROM unnest(dropped) AS gone (n)
        CROSS JOIN LATERAL (
            SELECT new.ctid AS row_ctid FROM ropeway.job AS new
            WHERE new.queue = queue_of[gone.n] AND new.id = ids[gone.n] AND abs(new.ord) = seqs[gone.n]
            LIMIT 1
        ) AS own
    ) AS gone
    WHERE j.ctid = gone.row_ctid;
    FOR alike IN
        SELECT
            given.queue, count(*)::integer AS amount,
            string_agg(
                '["' || given.holder || '",{"key":' || to_json(given.key) || ',"discarded":"' || given.id || '"}]',
                ',' ORDER BY given.n
            ) AS listed
        FROM unnest(letters, holders, queue_of, ids, keys) WITH ORDINALITY AS given (letter, holder, queue, id, key, n)
        WHERE given.letter = 'd' AND given.n BETWEEN first AND last
        GROUP BY given.queue
    LOOP
        at := coalesce(array_position(done.queues, alike.queue), cardinality(done.queues) + 1);
        done.queues[at] := alike.queue;
        done.steps[at] := ropeway.add_entry(
            done.steps[at], ropeway.entry('{{DEDUPLICATED}}', instant, NULL, alike.listed), alike.amount
        );
    END LOOP;
END
$$;
