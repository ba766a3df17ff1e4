-- Changes the settings of a queue.
-- Takes the queue, whether to pause it (null: unchanged), names to pause and to resume, the limit of active jobs (null:
-- unchanged; 0: no limit), the ages of its stages (the same), the stages that have callbacks besides the known ones (null:
-- unchanged; empty: none has), the instant, and whether it may notify.
-- Returns all settings, and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.configure(
    queue_name text, pauses boolean, pause_names text[], resume_names text[], new_limit bigint,
    new_stale bigint, new_delete bigint, new_callbacks text[],
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT is_paused boolean, OUT paused_names text[], OUT max_active bigint, OUT stale_after bigint,
    OUT delete_after bigint, OUT stale_until bigint, OUT callbacks text[], OUT wakes text[]
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
    stale_after := CASE WHEN new_stale IS NULL THEN old.stale_after ELSE nullif(new_stale, 0) END;
    delete_after := CASE WHEN new_delete IS NULL THEN old.delete_after ELSE nullif(new_delete, 0) END;
    stale_until := old.stale_until;
    callbacks := CASE
        WHEN new_callbacks = '{}' THEN '{}'
        WHEN new_callbacks IS NOT NULL OR new_stale IS NOT NULL OR new_delete IS NOT NULL THEN ARRAY(
            SELECT stage.name FROM unnest(ARRAY[{{STAGES}}]) AS stage (name)
            WHERE stage.name = ANY (coalesce(old.callbacks, '{}') || coalesce(new_callbacks, '{}'))
        )
        ELSE old.callbacks
    END;
    UPDATE ropeway.queue AS q SET
        stale_after = configure.stale_after,
        delete_after = configure.delete_after,
        callbacks = configure.callbacks,
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
