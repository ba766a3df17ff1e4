-- Settles attempts that completed, and are kept alike.
-- Takes the queue, ids (each once, in order), tokens, results (null: none has one), the age and the count to keep them for, and the
-- instant.
-- Returns the step, and two letters for each (the verdict and the state before), or null if all were active.
CREATE OR REPLACE FUNCTION ropeway.settle_done(
    queue_id integer, ids text[], tokens text[], results text[], age bigint, keeps bigint, instant bigint,
    OUT s ropeway.step, OUT letters text
)
LANGUAGE plpgsql AS $$
DECLARE
    expires_at CONSTANT bigint := ropeway.expiry(instant, age, keeps);
    goes_at_once CONSTANT boolean := coalesce(age = 0, false) OR coalesce(keeps = 0, false);
    amount integer;
    completed text[];
    jobs text;
    pasts bigint[];
    others text[];
    rest record;
BEGIN
    WITH gone AS (
        DELETE FROM ropeway.active AS a
        USING (
            -- LATERAL and LIMIT: each by its key, in the order of ids, whatever the planner thinks of the table.
            SELECT mine.spot, given.result
            FROM unnest(ids, tokens, results) AS given (id, token, result)
            CROSS JOIN LATERAL (
                SELECT held.ctid AS spot FROM ropeway.active AS held
                WHERE held.queue = queue_id AND held.id = given.id AND held.token = given.token
                LIMIT 1
            ) AS mine
        ) AS ended
        WHERE a.ctid = ended.spot
        RETURNING a.*, ended.result
    ), kept AS (
        INSERT INTO ropeway.finished (
            seq, finished_at, expires_at, state, queue, attempts_made, attempts_started, stalled_count, logged,
            id, name, started_at, renewed_at, token, worker, progress, result
        )
        SELECT
            abs(gone.ord), instant, expires_at, 'completed', gone.queue, gone.attempts_made,
            gone.attempts_started, gone.stalled_count, gone.logged, gone.id, gone.name, gone.started_at,
            gone.renewed_at, gone.token, gone.worker, gone.progress, gone.result
        FROM gone
        WHERE NOT goes_at_once
    )
    SELECT
        count(*), array_agg(gone.id),
        string_agg(
            '["' || gone.id || '",' || coalesce('{"result":' || nullif(gone.result, 'null') || '}', 'null') || ']', ','
        ),
        array_agg(abs(gone.ord)) FILTER (WHERE gone.attempts_started > 1 OR gone.logged > 0)
    INTO amount, completed, jobs, pasts
    FROM gone;
    IF amount > 0 THEN
        s.entries := ropeway.entry('complete', instant, 'completed', jobs);
        s.events := amount;
        s.active := -amount;
        s.metric_completed := amount;
        IF goes_at_once THEN
            DELETE FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (completed);
            PERFORM ropeway.forget_past(pasts);
            s := ropeway.told(
                s,
                ropeway.entry(
                    'remove', instant, NULL,
                    '["' || array_to_string(completed, '",{"prev":"completed"}],["') || '",{"prev":"completed"}]'
                ),
                amount
            );
            s.metric_removed := amount;
        ELSE
            s.completed := amount;
        END IF;
    END IF;
    IF amount < cardinality(ids) THEN
        -- Not held under that token; or a renewal came between.
        SELECT array_agg(given.id), array_agg(given.token), array_agg(given.result) INTO others, tokens, results
        FROM unnest(ids, tokens, results) AS given (id, token, result)
        WHERE completed IS NULL OR given.id <> ALL (completed);
        amount := cardinality(others);
        IF completed IS NOT NULL AND EXISTS (
            SELECT FROM unnest(others, tokens) AS given (id, token)
            JOIN ropeway.active AS a ON a.queue = queue_id AND a.id = given.id AND a.token = given.token
        ) THEN
            -- To go back for it with others in hand could end in a wait in a circle: the caller tries again.
            RAISE serialization_failure USING MESSAGE = 'a lock was renewed meanwhile';
        END IF;
        rest := ropeway.settle_others(
            s, queue_id, others, tokens, array_fill('complete'::text, ARRAY[amount]), results, NULL, NULL,
            array_fill(0::bigint, ARRAY[amount]), array_fill(age, ARRAY[amount]), array_fill(keeps, ARRAY[amount]),
            array_fill(false, ARRAY[amount]), array_fill(0, ARRAY[amount]), instant
        );
        s := ropeway.retain(rest.s, queue_id, 'completed', rest.completed_at_once, NULL, amount, instant);
        letters := (
            SELECT string_agg(
                coalesce(substr(rest.letters, 2 * array_position(others, given.id) - 1, 2), 'da'), '' ORDER BY given.n
            )
            FROM unnest(ids) WITH ORDINALITY AS given (id, n)
        );
    END IF;
END
$$;
