-- Adds jobs one by one, in the order given, as part of another call. An id that exists is left as it is.
-- Takes the jobs (json, a list of objects: the fields of a new job, and the key, mode and ttl of its dedupe rule), the instant,
-- and whether it may notify.
-- Returns the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.add_listed(jobs json, instant bigint, may_wake boolean) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    lock_timeout CONSTANT text := current_setting('lock_timeout');
    given record;
    wakes text[];
BEGIN
    SELECT
        ARRAY(SELECT DISTINCT unnest(array_agg(job.queue)) ORDER BY 1) AS queues, array_agg(job.queue) AS queue_of,
        array_agg(job.id) AS ids, array_agg(job.name) AS names, array_agg(job.data) AS datas,
        array_agg(job.options) AS options, array_agg(job.priority) AS priorities, array_agg(job.lifo) AS lifos,
        array_agg(job.delay) AS delays, array_agg(job.due_at) AS dues, array_agg(job.tags) AS tags,
        CASE WHEN bool_or(job.extras IS NOT NULL) THEN array_agg(job.extras) END AS extras,
        CASE WHEN bool_or(job.key IS NOT NULL) THEN array_agg(job.key) END AS keys, array_agg(job.mode) AS modes,
        array_agg(job.ttl) AS ttls
    INTO given
    FROM json_to_recordset(jobs) AS job (
        queue text, id text, name text, data text, options text, priority integer, lifo boolean, delay bigint,
        due_at bigint, tags text, extras text, key text, mode text, ttl bigint
    );
    IF given.ids IS NULL THEN
        RETURN '{}';
    END IF;
    IF given.keys IS NOT NULL THEN
        -- The call has locked keys before: these come in another order than that of all calls.
        PERFORM set_config('lock_timeout', '{{BRIEFLY}}', true);
    END IF;
    SELECT added.wakes INTO wakes
    FROM ropeway.add(
        given.queues, ARRAY(SELECT array_position(given.queues, each.queue) FROM unnest(given.queue_of) AS each (queue)),
        ARRAY(SELECT generate_series(1, cardinality(given.ids))), given.ids, given.names, given.datas, given.options,
        given.priorities, given.lifos, given.delays, given.dues, given.tags, NULL, given.extras, given.keys, given.modes,
        given.ttls, instant, may_wake
    ) AS added;
    IF given.keys IS NOT NULL THEN
        PERFORM set_config('lock_timeout', lock_timeout, true);
    END IF;
    RETURN wakes;
END
$$;
