-- Adds one job if its id is new: the fast path of `add`.
-- Takes the parameters of `add` for one job, and when it expires (null: never).
-- Returns the wakes (see `wake`), or null if the id exists.
CREATE OR REPLACE FUNCTION ropeway.add_single(
    queue_name text, job_id text, job_name text, data text, options text, priority integer, lifo boolean, delay bigint,
    due_at bigint, tags text, extras text, start_by bigint, instant bigint, may_wake boolean
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    queue_id integer := ropeway.queue_id(queue_name);
    seq bigint := nextval('ropeway.job_seq');
    ord bigint := CASE WHEN lifo THEN -seq ELSE seq END;
    due bigint := CASE
        WHEN delay > 0 THEN least(instant + delay, {{LAST_INSTANT}})
        WHEN add_single.due_at > instant THEN add_single.due_at
    END;
BEGIN
    INSERT INTO ropeway.job (ord, created_at, queue, priority, id, name, options, data, tags, extras)
    VALUES (
        ord, instant, queue_id, coalesce(add_single.priority, 0), job_id, job_name,
        coalesce(add_single.options, '{}'), add_single.data,
        CASE WHEN add_single.tags IS NOT NULL THEN ropeway.texts_of_json(add_single.tags::json) END, add_single.extras
    )
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF due IS NULL THEN
        INSERT INTO ropeway.waiting (ord, queue, priority, id, name, has_ties, start_by)
        VALUES (
            ord, queue_id, coalesce(add_single.priority, 0), job_id, job_name, CASE WHEN extras IS NOT NULL THEN true END,
            add_single.start_by
        );
        INSERT INTO ropeway.step (at, queue, events, waiting, metric_added, entries)
        VALUES (
            instant, queue_id, {{EVENTS_OF_ADD}}, 1, 1,
            '["{{ADD}}",' || instant || ',"waiting",[["' || job_id || '",{"name":' || to_json(job_name) || '}]],null]'
        );
    ELSE
        INSERT INTO ropeway.later (ord, due_at, queue, priority, id, name, has_ties, start_by)
        VALUES (
            ord, due, queue_id, coalesce(add_single.priority, 0), job_id, job_name, CASE WHEN extras IS NOT NULL THEN true END,
            add_single.start_by
        );
        INSERT INTO ropeway.step (at, queue, events, delayed, metric_added, entries)
        VALUES (
            instant, queue_id, {{EVENTS_OF_ADD}}, 1, 1,
            '["{{ADD}}",' || instant || ',"delayed",[["' || job_id || '",{"name":' || to_json(job_name)
            || ',"due_at":' || due || '}]],null]'
        );
    END IF;
    RETURN array_remove(
        ARRAY[ropeway.wake(queue_id, 'jobs', may_wake), ropeway.wake(queue_id, 'events', may_wake)], NULL
    );
END
$$;
