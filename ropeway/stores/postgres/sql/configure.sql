-- Changes the settings of a queue.
-- Takes the queue, whether to pause it (null: unchanged), names to pause and to resume, the limit of active jobs (null:
-- unchanged; 0: no limit), the instant, and whether it may notify.
-- Returns all settings, and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.configure(
    queue_name text, pauses boolean, pause_names text[], resume_names text[], new_limit bigint,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT is_paused boolean, OUT paused_names text[], OUT max_active bigint, OUT wakes text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer := ropeway.queue_id(queue_name);
    old ropeway.queue;
    name text;
BEGIN
    SELECT q.* INTO old FROM ropeway.queue AS q WHERE q.id = queue_id FOR UPDATE;
    is_paused := coalesce(pauses, old.is_paused);
    paused_names := ARRAY(
        SELECT DISTINCT given.name FROM unnest(old.paused_names || pause_names) AS given (name)
        WHERE given.name <> ALL (resume_names)
        ORDER BY given.name
    );
    max_active := CASE WHEN new_limit IS NULL THEN old.max_active ELSE nullif(new_limit, 0) END;
    UPDATE ropeway.queue AS q SET
        is_configured = true,
        is_paused = configure.is_paused,
        paused_names = configure.paused_names,
        max_active = configure.max_active
    WHERE q.id = queue_id;
    IF is_paused <> old.is_paused THEN
        s := ropeway.add_entry(
            s, ropeway.entry(CASE WHEN is_paused THEN '{{PAUSED}}' ELSE '{{RESUMED}}' END, instant, NULL, NULL), 1
        );
    END IF;
    FOREACH name IN ARRAY paused_names LOOP
        IF name <> ALL (old.paused_names) THEN
            s := ropeway.add_entry(
                s, ropeway.entry('{{PAUSED}}', instant, NULL, NULL, '{"name":' || to_json(name) || '}'), 1
            );
        END IF;
    END LOOP;
    FOREACH name IN ARRAY old.paused_names LOOP
        IF name <> ALL (paused_names) THEN
            s := ropeway.add_entry(
                s, ropeway.entry('{{RESUMED}}', instant, NULL, NULL, '{"name":' || to_json(name) || '}'), 1
            );
        END IF;
    END LOOP;
    wakes := ropeway.write_step(
        s, queue_id, instant,
        (is_paused, paused_names, max_active) IS DISTINCT FROM (old.is_paused, old.paused_names, old.max_active),
        may_wake
    );
END
$$;
