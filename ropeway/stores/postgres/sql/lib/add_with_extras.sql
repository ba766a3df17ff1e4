-- Adds one job that has extras, if its id is new, and its dedupe key is free or held by a job that is only found: a fast
-- path of `add`.
-- Takes the parameters of `add` for one job.
-- Returns the answer of `add` and the wakes (see `wake`), or nulls if there is more to do.
CREATE OR REPLACE FUNCTION ropeway.add_with_extras(
    queue_name text, job_id text, job_name text, data text, options text, priority integer, lifo boolean, delay bigint,
    due_at bigint, tags text, extras text, wanted text, mode text, ttl bigint, instant bigint, may_wake boolean,
    OUT verdicts text, OUT wakes text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    queue_id CONSTANT integer := ropeway.queue_id(queue_name);
    start_by CONSTANT bigint := ropeway.start_by(extras, instant);
    s ropeway.step;
    hold ropeway.held_key;
BEGIN
    IF wanted IS NOT NULL THEN
        SELECT k.* INTO hold FROM ropeway.held_key AS k WHERE k.queue = queue_id AND k.key = wanted;
        IF FOUND THEN
            IF
                mode IN ({{FINDING_MODES}}) AND (hold.until <= instant) IS NOT TRUE
                AND NOT EXISTS (SELECT FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = job_id)
            THEN
                verdicts := 'd ' || hold.holder;
                s.events := 1;
                s.entries := ropeway.entry(
                    '{{DEDUPLICATED}}', instant, NULL,
                    '["' || hold.holder || '",{"key":' || to_json(wanted) || ',"discarded":"' || job_id || '"}]'
                );
                wakes := ropeway.write_step(s, queue_id, instant, false, may_wake);
            END IF;
            RETURN;
        END IF;
        INSERT INTO ropeway.held_key (until, queue, key, holder)
        VALUES (CASE WHEN mode = '{{MODE_THROTTLE}}' THEN instant + ttl END, queue_id, wanted, job_id)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    wakes := ropeway.add_single(
        queue_name, job_id, job_name, data, options, priority, lifo, delay, due_at, tags, extras, start_by, instant, may_wake
    );
    IF wakes IS NULL THEN
        DELETE FROM ropeway.held_key AS k WHERE k.queue = queue_id AND k.key = wanted;
        RETURN;
    END IF;
    verdicts := 'c';
    IF start_by IS NOT NULL THEN
        UPDATE ropeway.queue AS q SET has_deadlines = true WHERE q.id = queue_id AND NOT q.has_deadlines;
    END IF;
END
$$;
