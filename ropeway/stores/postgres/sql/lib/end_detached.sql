-- Ends jobs whose state's row is deleted already, in groups that have the same retention.
-- Takes the step, the queue, the move and the final state, the jobs as they are to be stored, their results (null: none
-- has one), event details of each (json) and of all, the ages and counts of their retention, and the instant.
-- Returns the step, and news for their parents (see `end_jobs`).
CREATE OR REPLACE FUNCTION ropeway.end_detached(
    INOUT s ropeway.step, queue_id integer, move text, entered ropeway.state, jobs ropeway.active[], results text[],
    details text[], common text, ages bigint[], counts bigint[], instant bigint, OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    -- A queue that deletes jobs replaces the defaults: see job/stages.py.
    deletes CONSTANT boolean := EXISTS (
        SELECT FROM ropeway.queue AS q WHERE q.id = queue_id AND q.delete_after IS NOT NULL
    );
    alike record;
    done record;
BEGIN
    FOR alike IN
        SELECT
            CASE WHEN deletes AND ropeway.is_default_keep(ages[n], counts[n]) THEN {{LAST_INSTANT}} ELSE ages[n] END AS age,
            CASE WHEN NOT (deletes AND ropeway.is_default_keep(ages[n], counts[n])) THEN counts[n] END AS keeps,
            array_agg(jobs[n] ORDER BY n) AS jobs,
            array_agg(results[n] ORDER BY n) AS results, array_agg(details[n] ORDER BY n) AS details
        FROM generate_subscripts(jobs, 1) AS n
        GROUP BY 1, 2
        ORDER BY min(n)
    LOOP
        done := ropeway.end_jobs(
            s, queue_id, move, entered, alike.age, alike.keeps, NULL, NULL, alike.jobs, alike.results, alike.details, common,
            instant
        );
        s := done.s;
        news := news || done.news;
    END LOOP;
END
$$;
