-- Records the ends of children in their links and families, which must be locked.
-- Takes the news.
-- Returns what they do to parents, as far as it is more than one child less to wait for, in the order of the news and of each
-- child's parents; null if nothing.
CREATE OR REPLACE FUNCTION ropeway.note_ends(news ropeway.news[]) RETURNS ropeway.judgement[]
LANGUAGE plpgsql AS $$
DECLARE
    judged ropeway.judgement[];
BEGIN
    WITH told AS MATERIALIZED (
        SELECT
            ARRAY[given.n, waits.n] AS n, known.family, known.row_ctid, known.state AS was, given.ended, given.result, given.reason,
            ropeway.effect(given.ended, known.policy) AS effect,
            known.state = '{{CHILD_PENDING}}' OR ropeway.effect('failed', known.policy) = '{{EFFECT_HOLD}}' AS was_awaited
        FROM unnest(news) WITH ORDINALITY AS given (queue, id, ended, result, reason, families, attempts, key, follow_ups, n)
        CROSS JOIN LATERAL unnest(given.families) WITH ORDINALITY AS waits (family, n)
        -- LATERAL and LIMIT: each by its key, whatever the statistics of the table.
        CROSS JOIN LATERAL (
            SELECT l.family, l.ctid AS row_ctid, l.policy, l.state FROM ropeway.link AS l
            WHERE l.family = waits.family AND l.queue = given.queue AND l.id = given.id
            LIMIT 1
        ) AS known
        -- A failure counts once. What completed stays so, also when the child is retried by hand. One that failed, was
        -- retried and is removed is forgotten if it is still waited for.
        WHERE known.state = '{{CHILD_PENDING}}' OR known.state <> 'completed' AND (
            ropeway.effect(given.ended, known.policy) = '{{EFFECT_DONE}}' OR (
                ropeway.effect(given.ended, known.policy) = '{{EFFECT_FORGET}}'
                AND ropeway.effect('failed', known.policy) = '{{EFFECT_HOLD}}'
            )
        )
    ), forgotten AS (
        DELETE FROM ropeway.link AS l USING told WHERE l.ctid = told.row_ctid AND told.effect = '{{EFFECT_FORGET}}'
    ), noted AS (
        UPDATE ropeway.link AS l SET state = told.ended, result = told.result, reason = told.reason
        FROM told WHERE l.ctid = told.row_ctid AND told.effect <> '{{EFFECT_FORGET}}'
    ), summed AS (
        SELECT
            told.family, min(told.n) AS n,
            count(*) FILTER (WHERE told.was_awaited AND told.effect <> '{{EFFECT_HOLD}}') AS settled,
            count(*) FILTER (WHERE told.effect = '{{EFFECT_FORGET}}') AS forgotten,
            count(*) FILTER (WHERE told.ended = 'completed') AS completed,
            count(*) FILTER (WHERE told.ended = 'failed') - count(*) FILTER (WHERE told.was = 'failed') AS failed,
            count(*) FILTER (WHERE told.ended = 'cancelled') - count(*) FILTER (WHERE told.was = 'cancelled') AS cancelled,
            array_agg(told.effect ORDER BY told.n) FILTER (WHERE told.effect IN ({{OWED}})) AS effects,
            array_agg(told.reason ORDER BY told.n) FILTER (WHERE told.effect IN ({{OWED}})) AS reasons
        FROM told
        GROUP BY told.family
    ), counted AS (
        UPDATE ropeway.family AS f
        SET awaited = f.awaited - summed.settled, total = f.total - summed.forgotten,
            completed = f.completed + summed.completed, failed = f.failed + summed.failed,
            cancelled = f.cancelled + summed.cancelled
        FROM summed WHERE f.id = summed.family
        RETURNING f.id, f.queue, f.parent, f.awaited, summed.n, summed.effects, summed.reasons
    )
    SELECT array_agg(
        ROW(
            counted.id, counted.queue, counted.parent, counted.effects[1], counted.reasons[1], other.effect, other.reason
        )::ropeway.judgement
        ORDER BY counted.n
    )
    INTO judged
    FROM counted
    LEFT JOIN LATERAL (
        SELECT each.effect, each.reason
        FROM unnest(counted.effects[2:], counted.reasons[2:]) WITH ORDINALITY AS each (effect, reason, n)
        ORDER BY array_position(ARRAY[{{OWED}}], each.effect) DESC, each.n
        LIMIT 1
    ) AS other ON true
    WHERE counted.awaited = 0 OR counted.effects IS NOT NULL;
    RETURN judged;
END
$$;
