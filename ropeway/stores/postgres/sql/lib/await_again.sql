-- Lets a parent that is retried wait again for the children by which it failed, or would have, as far as they are still
-- there. Another job may have the id of one that is gone. A parent that was released does not wait.
-- Takes the parent's family, which must be locked.
-- Returns whether the parent has to wait, and the children that have to be retried with it, which are locked with their
-- families. Other calls are not waited for, because these locks are in no order.
CREATE OR REPLACE FUNCTION ropeway.await_again(
    family_id bigint, OUT waits boolean, OUT child_queues integer[], OUT child_ids text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    family ropeway.family;
BEGIN
    SELECT f.* INTO family FROM ropeway.family AS f WHERE f.id = family_id;
    IF NOT family.is_released THEN
        PERFORM FROM ropeway.link AS l
        CROSS JOIN LATERAL (
            SELECT FROM ropeway.finished AS f
            WHERE f.queue = l.queue AND f.id = l.id AND EXISTS (
                SELECT FROM ropeway.job WHERE job.queue = l.queue AND job.id = l.id AND family_id = ANY (job.families)
            )
            FOR UPDATE NOWAIT
        ) AS held
        WHERE l.family = family_id AND ropeway.effect(l.state, l.policy) = '{{EFFECT_FAIL}}';
        WITH failed AS MATERIALIZED (
            SELECT l.ctid AS row_ctid, l.queue, l.id, l.state, f.id IS NOT NULL AS is_final
            FROM ropeway.link AS l
            JOIN ropeway.job ON job.queue = l.queue AND job.id = l.id AND family_id = ANY (job.families)
            LEFT JOIN ropeway.finished AS f ON f.queue = l.queue AND f.id = l.id
            WHERE l.family = family_id AND ropeway.effect(l.state, l.policy) = '{{EFFECT_FAIL}}'
                AND f.state IS DISTINCT FROM 'completed'
        ), awaited AS (
            UPDATE ropeway.link AS l SET state = '{{CHILD_PENDING}}', reason = NULL FROM failed WHERE l.ctid = failed.row_ctid
        ), counted AS (
            UPDATE ropeway.family AS f
            SET owed = NULL, owed_reason = NULL,
                awaited = f.awaited + new.amount, failed = f.failed - new.failed, cancelled = f.cancelled - new.cancelled
            FROM (
                SELECT
                    count(*) AS amount, count(*) FILTER (WHERE failed.state = 'failed') AS failed,
                    count(*) FILTER (WHERE failed.state = 'cancelled') AS cancelled
                FROM failed
            ) AS new
            WHERE f.id = family_id
        )
        SELECT array_agg(failed.queue), array_agg(failed.id) INTO child_queues, child_ids FROM failed WHERE failed.is_final;
        PERFORM FROM ropeway.family AS f
        WHERE f.id = ANY (ARRAY(
            SELECT job.family FROM unnest(child_queues, child_ids) AS child (queue, id)
            JOIN ropeway.job ON job.queue = child.queue AND job.id = child.id
        ))
        FOR UPDATE NOWAIT;
        SELECT f.* INTO family FROM ropeway.family AS f WHERE f.id = family_id;
    END IF;
    waits := family.awaited > 0 AND NOT family.is_released;
END
$$;
