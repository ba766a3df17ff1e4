-- Reads a page of the children of a job, in the order in which they were added.
-- Takes the queue, the job's id, the states that are asked for, the number of the last child of the page before, and how
-- many at most.
-- Returns no row if there is no such job; else how many of its children are in each state, in the order of the states,
-- and 1 behind them if the job would wait for them; and for those of the page numbers, queues, ids, policies, states, results and reasons.
CREATE OR REPLACE FUNCTION ropeway.children(queue_name text, job_id text, of_states text[], after bigint, most bigint)
RETURNS TABLE (
    counts integer[], numbers integer[], queues text[], ids text[], policies text[], states text[], results text[],
    reasons text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    family_id bigint;
BEGIN
    SELECT j.family INTO family_id FROM ropeway.job AS j
    WHERE j.queue = (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name) AND j.id = job_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- One statement, and so one moment.
    RETURN QUERY
    SELECT
        (
            SELECT ARRAY[
                f.total - f.completed - f.failed - f.cancelled, f.completed, f.failed, f.cancelled,
                (f.awaited > 0 OR f.owed IS NOT NULL)::integer
            ]
            FROM ropeway.family AS f WHERE f.id = family_id
        ),
        array_agg(page.number), array_agg(page.queue), array_agg(page.id), array_agg(page.policy), array_agg(page.state),
        array_agg(page.result), array_agg(page.reason)
    FROM (
        SELECT l.number, q.name AS queue, l.id, l.policy, l.state, l.result, l.reason
        FROM ropeway.link AS l JOIN ropeway.queue AS q ON q.id = l.queue
        WHERE -l.family = -family_id AND l.number > after AND l.state = ANY (of_states)
        ORDER BY l.number
        LIMIT most
    ) AS page;
END
$$;
