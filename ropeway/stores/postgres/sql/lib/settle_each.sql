-- Settles outcomes other than plain completions, in order. Neighbours that end with the same move end together.
-- Takes the step, the queue, arrays of the parameters of `settle_one`, the ages and counts of retention, and the
-- instant.
-- Returns the step, the letters of all, how many went back to waiting or delayed, and news and judgements for
-- `conclude`.
CREATE OR REPLACE FUNCTION ropeway.settle_each(
    INOUT s ropeway.step, queue_id integer, ids text[], tokens text[], moves text[], results text[], reasons text[],
    traces text[], delays bigint[], ages bigint[], counts bigint[], exhausted boolean[], stack_traces integer[],
    instant bigint, OUT letters text, OUT back integer, OUT news ropeway.news[],
    OUT judged ropeway.judgement[]
)
LANGUAGE plpgsql AS $$
DECLARE
    most CONSTANT integer := cardinality(ids);
    one record;
    done record;
    ended ropeway.active[];
    ended_ids text[];
    ended_results text[];
    details text[];
    ended_ages bigint[];
    ended_counts bigint[];
BEGIN
    letters := '';
    back := 0;
    -- All locks in the order of ids, so that no two calls wait for each other.
    PERFORM FROM unnest(ids, tokens) AS given (id, token)
    JOIN ropeway.active AS a ON a.queue = queue_id AND a.id = given.id AND a.token = given.token
    ORDER BY a.id FOR UPDATE OF a;
    FOR n IN 1 .. most + 1 LOOP
        -- Before another outcome of the same job, too, which has to see it.
        IF ended IS NOT NULL AND (n > most OR moves[n] <> moves[n - 1] OR ids[n] = ANY (ended_ids)) THEN
            done := ropeway.end_detached(
                s, queue_id, moves[n - 1], CASE moves[n - 1] WHEN '{{COMPLETE}}' THEN 'completed' ELSE 'failed' END::ropeway.state,
                ended, ended_results, details, NULL, ended_ages, ended_counts, instant
            );
            s := done.s;
            news := news || done.news;
            ended := NULL;
            ended_ids := NULL;
            ended_results := NULL;
            details := NULL;
            ended_ages := NULL;
            ended_counts := NULL;
        END IF;
        EXIT WHEN n > most;
        one := ropeway.settle_one(
            s, queue_id, ids[n], tokens[n], moves[n], results[n], reasons[n], traces[n], delays[n], exhausted[n],
            stack_traces[n], instant
        );
        s := one.s;
        letters := letters || one.letters;
        IF (one.judged).family IS NOT NULL THEN
            judged := judged || one.judged;
        END IF;
        IF one.entered IN ('completed', 'failed') THEN
            ended := ended || one.held;
            ended_ids := ended_ids || ids[n];
            ended_results := array_append(ended_results, CASE moves[n] WHEN '{{COMPLETE}}' THEN results[n] END);
            details := array_append(details, one.detail);
            ended_ages := array_append(ended_ages, ages[n]);
            ended_counts := array_append(ended_counts, counts[n]);
        ELSIF one.entered IN ('waiting', 'delayed') THEN
            back := back + 1;
        END IF;
    END LOOP;
END
$$;
