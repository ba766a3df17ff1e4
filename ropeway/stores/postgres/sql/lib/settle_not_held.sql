-- Answers plain completions of jobs that were not active under their token: lost, missing, or settled before.
-- Takes the step, the queue, the plain completions (see `settle`), the ids of those that were accepted, and the
-- instant.
-- Returns the step, two letters for each of all (the verdict and the state before), and news for parents (see `end_jobs`).
CREATE OR REPLACE FUNCTION ropeway.settle_not_held(
    INOUT s ropeway.step, queue_id integer, ids text[], tokens text[], results text[], age bigint, keeps bigint,
    completed text[], instant bigint, OUT letters text, OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    others text[];
    amount integer;
    rest record;
BEGIN
    SELECT array_agg(given.id), array_agg(given.token), array_agg(given.result) INTO others, tokens, results
    FROM unnest(ids, tokens, results) AS given (id, token, result)
    WHERE completed IS NULL OR given.id <> ALL (completed);
    amount := cardinality(others);
    IF completed IS NOT NULL AND EXISTS (
        SELECT FROM unnest(others, tokens) AS given (id, token)
        JOIN ropeway.active AS a ON a.queue = queue_id AND a.id = given.id AND a.token = given.token
    ) THEN
        -- Locking it now, while others are held, could deadlock: the caller tries again.
        RAISE serialization_failure USING MESSAGE = 'a lock was renewed meanwhile';
    END IF;
    rest := ropeway.settle_each(
        s, queue_id, others, tokens, array_fill('{{COMPLETE}}'::text, ARRAY[amount]), results, NULL, NULL,
        array_fill(0::bigint, ARRAY[amount]), array_fill(age, ARRAY[amount]), array_fill(keeps, ARRAY[amount]),
        array_fill(false, ARRAY[amount]), array_fill(0, ARRAY[amount]), instant
    );
    s := rest.s;
    news := rest.news;
    letters := (
        SELECT string_agg(
            coalesce(substr(rest.letters, 2 * array_position(others, given.id) - 1, 2), 'da'), '' ORDER BY given.n
        )
        FROM unnest(ids) WITH ORDINALITY AS given (id, n)
    );
END
$$;
