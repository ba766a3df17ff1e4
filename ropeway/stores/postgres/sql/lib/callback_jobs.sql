-- The jobs by which callbacks are called for finished jobs that become stale or are deleted, as `callback_job` of job/stages.py makes them.
-- Takes the queue and its name, the stage, and the ids.
-- Returns json as `add_listed` takes it; null if there are none.
CREATE OR REPLACE FUNCTION ropeway.callback_jobs(queue_id integer, queue_name text, stage text, ids text[]) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT json_agg(
        json_build_object(
            'queue', {{SYSTEM_PREFIX}} || stage || '.' || queue_name,
            'id', format('{{CALLBACK_ID}}', stage, ended.finished_at, right(ended.id, {{ID_KEPT}})),
            'name', job.name, 'data', job.data, 'options', '{{CALLBACK_OPTIONS}}',
            'extras', json_build_object(
                'origin', json_build_object(
                    'queue', queue_name, 'id', ended.id, 'reason', coalesce(ended.reason, ''),
                    'attempts', ended.attempts_made, 'at', ended.finished_at, 'event', ended.state,
                    'result', ended.result, 'stage', stage
                )
            )::text
        )
        ORDER BY given.n
    )
    FROM unnest(ids) WITH ORDINALITY AS given (id, n)
    CROSS JOIN LATERAL (
        SELECT f.* FROM ropeway.finished AS f WHERE f.queue = queue_id AND f.id = given.id LIMIT 1
    ) AS ended
    CROSS JOIN LATERAL (
        SELECT j.name, j.data FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = given.id LIMIT 1
    ) AS job
$$;
