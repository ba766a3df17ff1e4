-- Decides what becomes of parents whose children ended. One that does not wait only keeps what it is owed.
-- Takes the queues of the call and their steps, the locks that it revokes, the judgements, and the instant. Families must be
-- locked.
-- Returns the first three, and news for the parents of those that ended.
CREATE OR REPLACE FUNCTION ropeway.judge(
    INOUT queues integer[], INOUT steps ropeway.step[], INOUT revoked ropeway.revoked[], judged ropeway.judgement[],
    instant bigint, OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    waiting bigint[];
    released bigint[];
    failing ropeway.judgement[];
    removed ropeway.judgement[];
    one ropeway.judgement;
    after record;
BEGIN
    IF cardinality(judged) > 1 AND '{{EFFECT_REMOVE}}' IN (SELECT given.effect FROM unnest(judged) AS given) THEN
        -- One by one: a later one may be of a job that an earlier one removes, as a descendant.
        FOREACH one IN ARRAY judged LOOP
            after := ropeway.judge(queues, steps, revoked, ARRAY[one], instant);
            queues := after.queues;
            steps := after.steps;
            revoked := after.revoked;
            news := news || after.news;
        END LOOP;
        RETURN;
    END IF;
    -- Not waited for: who has locked one of them may wait for a family.
    waiting := ARRAY(
        SELECT given.family FROM unnest(judged) AS given
        CROSS JOIN LATERAL (
            SELECT FROM ropeway.later AS l WHERE l.queue = given.queue AND l.id = given.id AND l.due_at IS NULL
            FOR UPDATE NOWAIT
        ) AS held
    );
    UPDATE ropeway.family AS f SET owed = owing.effect, owed_reason = owing.reason
    FROM (
        SELECT DISTINCT ON (each.family) each.family, each.effect, each.reason
        FROM (
            SELECT given.family, given.effect, given.reason, 1 AS n FROM unnest(judged) AS given
            WHERE given.family <> ALL (waiting)
            UNION ALL
            SELECT given.family, given.other_effect, given.other_reason, 2 FROM unnest(judged) AS given
        ) AS each
        WHERE each.effect IS NOT NULL
        ORDER BY each.family, array_position(ARRAY[{{OWED}}], each.effect) DESC, each.n
    ) AS owing
    WHERE f.id = owing.family
        AND array_position(ARRAY[{{OWED}}], owing.effect) > coalesce(array_position(ARRAY[{{OWED}}], f.owed), 0);
    IF waiting = '{}' THEN
        RETURN;
    END IF;
    SELECT
        array_agg(given.family) FILTER (WHERE given.effect IS NULL OR given.effect = '{{EFFECT_START}}'),
        array_agg(ROW(given.*)::ropeway.judgement) FILTER (WHERE given.effect = '{{EFFECT_FAIL}}'),
        array_agg(ROW(given.*)::ropeway.judgement) FILTER (WHERE given.effect = '{{EFFECT_REMOVE}}')
    INTO released, failing, removed
    FROM unnest(judged) AS given
    WHERE given.family = ANY (waiting);
    IF released IS NOT NULL THEN
        after := ropeway.release(queues, steps, released, instant);
        queues := after.queues;
        steps := after.steps;
    END IF;
    IF failing IS NOT NULL THEN
        after := ropeway.fail_by_children(queues, steps, failing, instant);
        queues := after.queues;
        steps := after.steps;
        news := after.news;
    END IF;
    IF removed IS NOT NULL THEN
        after := ropeway.remove_trees(queues, steps, revoked, removed, instant);
        queues := after.queues;
        steps := after.steps;
        revoked := after.revoked;
        news := news || after.news;
    END IF;
END
$$;
