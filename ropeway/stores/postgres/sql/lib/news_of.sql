-- Completes the news of jobs that ended by one move: the reason that parents are told, and their families; dedupe keys, and
-- follow-ups (json, a list).
-- Takes the news of jobs of one queue, with the reason of each job itself, the move, and the instant.
-- Returns the news of those that have any of this; null if none has.
CREATE OR REPLACE FUNCTION ropeway.news_of(news ropeway.news[], move text, instant bigint) RETURNS ropeway.news[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
    queue_name CONSTANT text := (SELECT q.name FROM ropeway.queue AS q WHERE q.id = (news[1]).queue);
BEGIN
    RETURN (
        SELECT
            array_agg(
                ROW(
                    given.queue, given.id, given.ended, given.result,
                    -- As `reason_for_parents` of job/flows.py.
                    CASE
                        WHEN given.ended = 'completed' THEN NULL
                        WHEN move = '{{FAIL_BY_CHILD}}' THEN given.reason
                        WHEN move <> '{{CANCEL}}' THEN
                            format('{{REASON_OF_FAILED_CHILD}}', queue_name, given.id, coalesce(given.reason, ''))
                        WHEN given.reason <> '' THEN
                            format('{{REASON_OF_CANCELLED_CHILD_WITH_REASON}}', queue_name, given.id, given.reason)
                        ELSE format('{{REASON_OF_CANCELLED_CHILD}}', queue_name, given.id)
                    END,
                    job.families, given.attempts, job.extras -> 'dedupe' ->> 'key',
                    (
                        SELECT json_agg(
                            json_build_object(
                                'queue', added.queue, 'id', added.id, 'name', job.name, 'data', job.data,
                                'options', added.options, 'extras', added.extras::text
                            )
                        )::text
                        FROM (
                            -- As `dead_letter_of` of job/dead_letters.py.
                            SELECT
                                job.extras ->> 'dead_letter', format('{{DEAD_LETTER_ID}}', queue_name, given.id, instant),
                                job.options, json_build_object('origin', job.origin)
                            WHERE given.ended = 'failed' AND job.extras -> 'dead_letter' IS NOT NULL
                            UNION ALL
                            -- As `delivery_of` of job/webhooks.py.
                            SELECT
                                {{DELIVERIES}}, format('{{DELIVERY_ID}}', queue_name, given.id, instant, given.ended),
                                '{{DELIVERY_OPTIONS}}', json_build_object(
                                    'origin', job.origin,
                                    'webhook', json_build_object('url', job.extras -> 'webhook' -> 'url')
                                )
                            WHERE job.is_reported
                        ) AS added (queue, id, options, extras)
                    )
                )::ropeway.news
                ORDER BY given.n
            )
        FROM unnest(news) WITH ORDINALITY AS given (queue, id, ended, result, reason, families, attempts, key, follow_ups, n)
        -- LATERAL and LIMIT: each by its key, whatever the statistics of the table.
        CROSS JOIN LATERAL (
            SELECT
                j.families, j.name, j.data, j.options, j.extras::json AS extras,
                (j.extras::json -> 'webhook' -> 'events')::jsonb ? given.ended AS is_reported,
                json_build_object(
                    'queue', queue_name, 'id', given.id,
                    'reason', CASE WHEN given.ended = 'completed' THEN '' ELSE coalesce(given.reason, '') END,
                    'attempts', given.attempts, 'at', instant, 'event', given.ended, 'result', given.result,
                    'priority', j.priority, 'tags', coalesce(j.tags, '{}')
                ) AS origin
            FROM ropeway.job AS j
            WHERE j.queue = given.queue AND j.id = given.id
            LIMIT 1
        ) AS job
        WHERE job.families IS NOT NULL OR job.extras -> 'dedupe' IS NOT NULL OR job.is_reported
            OR (given.ended = 'failed' AND job.extras -> 'dead_letter' IS NOT NULL)
    );
END
$$;
