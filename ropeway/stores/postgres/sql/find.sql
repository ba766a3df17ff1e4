-- Reads a page of the jobs of one state, in that state's order.
-- Takes the queue, the state, a name and a tag (nulls: any), how many jobs to return and how many to look at, both at
-- most, the key of the last job that was looked at before, whether backwards, and whether only jobs that are stale.
-- Returns a row for each job: its key, and the fields of a record without marks. If it looked at as many as it may, a last row has
-- only the key to go on from.
CREATE OR REPLACE FUNCTION ropeway.find(
    queue_name text, of_state ropeway.state, of_name text, of_tag text, most integer, looks integer, first bigint,
    second bigint, backwards boolean, only_stale boolean
) RETURNS TABLE (
    key_first bigint, key_second bigint,
    {{RECORD}}
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    listing text := CASE WHEN of_state IN ({{FINAL}}) THEN 'finished' ELSE of_state::text END
        || CASE WHEN backwards THEN ' backwards' ELSE '' END;
    queue_id integer;
    firsts bigint[];
    seconds bigint[];
    ids text[];
    names text[];
    matched integer;
    last bigint;
BEGIN
    SELECT q.id, CASE WHEN only_stale THEN q.stale_until ELSE {{LAST_INSTANT}} END INTO queue_id, last
    FROM ropeway.queue AS q WHERE q.name = queue_name;
    CASE listing
        WHEN 'waiting' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT w.priority AS a, w.ord AS b, w.id, w.name FROM ropeway.waiting AS w
                WHERE w.queue = queue_id AND (w.priority, w.ord) > (first, second)
                ORDER BY w.priority, w.ord
                LIMIT looks
            ) AS page;
        WHEN 'waiting backwards' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT w.priority AS a, w.ord AS b, w.id, w.name FROM ropeway.waiting AS w
                WHERE w.queue = queue_id AND (w.priority, w.ord) < (first, second)
                ORDER BY w.priority DESC, w.ord DESC
                LIMIT looks
            ) AS page;
        WHEN 'waiting-children' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT abs(w.ord) AS a, 0 AS b, w.id, w.name FROM ropeway.later AS w
                WHERE w.queue = queue_id AND w.due_at IS NULL AND abs(w.ord) > first
                ORDER BY abs(w.ord)
                LIMIT looks
            ) AS page;
        WHEN 'waiting-children backwards' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT abs(w.ord) AS a, 0 AS b, w.id, w.name FROM ropeway.later AS w
                WHERE w.queue = queue_id AND w.due_at IS NULL AND abs(w.ord) < first
                ORDER BY abs(w.ord) DESC
                LIMIT looks
            ) AS page;
        WHEN 'delayed' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT w.due_at AS a, w.ord AS b, w.id, w.name FROM ropeway.later AS w
                WHERE w.queue = queue_id AND w.due_at IS NOT NULL AND (w.due_at, w.ord) > (first, second)
                ORDER BY w.due_at, w.ord
                LIMIT looks
            ) AS page;
        WHEN 'delayed backwards' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT w.due_at AS a, w.ord AS b, w.id, w.name FROM ropeway.later AS w
                WHERE w.queue = queue_id AND w.due_at IS NOT NULL AND (w.due_at, w.ord) < (first, second)
                ORDER BY w.due_at DESC, w.ord DESC
                LIMIT looks
            ) AS page;
        WHEN 'active' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT w.started_at AS a, abs(w.ord) AS b, w.id, w.name FROM ropeway.active AS w
                WHERE w.queue = queue_id AND (w.started_at, abs(w.ord)) > (first, second)
                ORDER BY w.started_at, abs(w.ord)
                LIMIT looks
            ) AS page;
        WHEN 'active backwards' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                SELECT w.started_at AS a, abs(w.ord) AS b, w.id, w.name FROM ropeway.active AS w
                WHERE w.queue = queue_id AND (w.started_at, abs(w.ord)) < (first, second)
                ORDER BY w.started_at DESC, abs(w.ord) DESC
                LIMIT looks
            ) AS page;
        WHEN 'finished' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                (
                    SELECT w.finished_at AS a, w.seq AS b, w.id, w.name FROM ropeway.finished AS w
                    WHERE w.queue = queue_id AND w.state = of_state AND w.expires_at IS NOT NULL
                        AND (w.finished_at, w.seq) > (first, second) AND w.finished_at <= last
                    ORDER BY w.finished_at, w.seq
                    LIMIT looks
                )
                UNION ALL
                (
                    SELECT w.finished_at AS a, w.seq AS b, w.id, w.name FROM ropeway.finished AS w
                    WHERE w.queue = queue_id AND w.state = of_state AND w.expires_at IS NULL
                        AND (w.finished_at, w.seq) > (first, second) AND w.finished_at <= last
                    ORDER BY w.finished_at, w.seq
                    LIMIT looks
                )
                ORDER BY a, b
                LIMIT looks
            ) AS page;
        WHEN 'finished backwards' THEN
            SELECT array_agg(page.a), array_agg(page.b), array_agg(page.id), array_agg(page.name)
            INTO firsts, seconds, ids, names
            FROM (
                (
                    SELECT w.finished_at AS a, w.seq AS b, w.id, w.name FROM ropeway.finished AS w
                    WHERE w.queue = queue_id AND w.state = of_state AND w.expires_at IS NOT NULL
                        AND (w.finished_at, w.seq) < (first, second) AND w.finished_at <= last
                    ORDER BY w.finished_at DESC, w.seq DESC
                    LIMIT looks
                )
                UNION ALL
                (
                    SELECT w.finished_at AS a, w.seq AS b, w.id, w.name FROM ropeway.finished AS w
                    WHERE w.queue = queue_id AND w.state = of_state AND w.expires_at IS NULL
                        AND (w.finished_at, w.seq) < (first, second) AND w.finished_at <= last
                    ORDER BY w.finished_at DESC, w.seq DESC
                    LIMIT looks
                )
                ORDER BY a DESC, b DESC
                LIMIT looks
            ) AS page;
    END CASE;
    RETURN QUERY
    SELECT
        page.a, page.b, {{RECORD_OF_WHOLE_JOB}}, NULL::text
    FROM unnest(firsts, seconds, ids, names) WITH ORDINALITY AS page (a, b, id, name, n)
    -- One by one, whatever the statistics of the tables: OFFSET keeps the planner from reversing the join.
    CROSS JOIN LATERAL (
        SELECT whole_job.* FROM ropeway.whole_job WHERE whole_job.queue = queue_id AND whole_job.id = page.id OFFSET 0
    ) AS p
    WHERE (of_name IS NULL OR page.name = of_name) AND (
        of_tag IS NULL
        OR of_tag = ANY ((SELECT j.tags FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = page.id)::text[])
    )
    ORDER BY page.n
    LIMIT most;
    GET DIAGNOSTICS matched = ROW_COUNT;
    IF matched < most AND cardinality(ids) = looks THEN
        key_first := firsts[looks];
        key_second := seconds[looks];
        RETURN NEXT;
    END IF;
END
$$;
