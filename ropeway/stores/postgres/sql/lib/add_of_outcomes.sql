-- Adds the jobs of accepted outcomes. An id that exists is left as it is.
-- Takes the jobs (json, a list of objects: the fields of a new job, and the number of its outcome, from 0 on), the
-- letters of all outcomes, the instant, and whether it may notify.
-- Returns the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.add_of_outcomes(adds text, letters text, instant bigint, may_wake boolean) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    wakes text[] := '{}';
BEGIN
    -- Only what was active just now: an outcome that is repeated has added its jobs before.
    SELECT added.wakes INTO wakes
    FROM (
        SELECT
            ARRAY(SELECT DISTINCT unnest(array_agg(job.queue)) ORDER BY 1) AS queues, array_agg(job.queue) AS queue_of,
            array_agg(job.id) AS ids, array_agg(job.name) AS names, array_agg(job.data) AS datas,
            array_agg(job.options) AS options, array_agg(job.priority) AS priorities, array_agg(job.lifo) AS lifos,
            array_agg(job.delay) AS delays, array_agg(job.due_at) AS dues, array_agg(job.tags) AS tags
        FROM json_to_recordset(adds::json) AS job (
            outcome integer, queue text, id text, name text, data text, options text, priority integer, lifo boolean,
            delay bigint, due_at bigint, tags text
        )
        WHERE substr(letters, 2 * job.outcome + 1, 2) = 'da'
        HAVING count(*) > 0
    ) AS given
    CROSS JOIN LATERAL ropeway.add(
        given.queues, ARRAY(SELECT array_position(given.queues, each.queue) FROM unnest(given.queue_of) AS each (queue)),
        ARRAY(SELECT generate_series(1, cardinality(given.ids))), given.ids, given.names, given.datas, given.options,
        given.priorities, given.lifos, given.delays, given.dues, given.tags, NULL, instant, may_wake
    ) AS added;
    RETURN coalesce(wakes, '{}');
END
$$;
