-- Settles one outcome. Of a job that ends, only the row in `active` is deleted: the caller has to end it.
-- Takes the step, the queue, the job's id, token, move, result, reason, trace, delay (a negative one: until its children have
-- ended, or -1 less this if there are none to wait for), whether no attempts remain, how many failures it keeps, and the
-- instant.
-- Returns the step, two letters (the verdict and the state before), the state it enters, the job, its event details, and
-- what children did to it that failed before it waited, for `conclude`.
CREATE OR REPLACE FUNCTION ropeway.settle_one(
    INOUT s ropeway.step, queue_id integer, job_id text, token text, move text, result text, reason text, trace text,
    delay bigint, exhausted boolean, stack_traces integer, instant bigint,
    OUT letters text, OUT entered ropeway.state, OUT held ropeway.active, OUT detail text,
    OUT judged ropeway.judgement
)
LANGUAGE plpgsql AS $$
DECLARE
    due_at bigint;
    family ropeway.family;
BEGIN
    SELECT a.* INTO held FROM ropeway.active AS a
    WHERE a.queue = queue_id AND a.id = job_id AND a.token = settle_one.token
    FOR UPDATE;
    IF NOT FOUND THEN
        letters := ropeway.answer_not_held(queue_id, job_id, token, CASE move
            WHEN '{{COMPLETE}}' THEN ARRAY[{{TARGETS_OF_COMPLETE}}]
            WHEN '{{FAIL}}' THEN ARRAY[{{TARGETS_OF_FAIL}}]
            WHEN '{{RETRY}}' THEN ARRAY[{{TARGETS_OF_RETRY}}]
            WHEN '{{POSTPONE}}' THEN ARRAY[{{TARGETS_OF_POSTPONE}}]
            ELSE ARRAY[{{TARGETS_OF_HAND_BACK}}]
        END::ropeway.state[]);
        IF letters LIKE 'l%' THEN
            s := ropeway.add_entry(
                s, ropeway.entry('{{LOCK_LOST}}', instant, NULL, '["' || job_id || '",{"move":"' || move || '"}]'), 1
            );
        END IF;
        RETURN;
    END IF;
    letters := 'da';
    DELETE FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = job_id;

    IF move IN ('{{RETRY}}', '{{FAIL}}') THEN
        PERFORM ropeway.add_failure(
            abs(held.ord), held.attempts_started, held.started_at, held.worker, reason, trace, stack_traces, instant
        );
        held.attempts_made := held.attempts_made + 1;
        held.reason := reason;
    END IF;
    IF delay < 0 THEN
        SELECT f.* INTO family FROM ropeway.job AS j JOIN ropeway.family AS f ON f.id = j.family
        WHERE j.queue = queue_id AND j.id = job_id AND (f.awaited > 0 OR f.owed IS NOT NULL);
        delay := -1 - delay;
    END IF;
    IF family.id IS NOT NULL THEN
        entered := 'waiting-children';
        INSERT INTO ropeway.later (ord, queue, priority, {{CARRIED}}, reason)
        VALUES (held.ord, queue_id, held.priority, {{CARRIED_OF_HELD}}, held.reason);
        UPDATE ropeway.family AS f SET is_released = false, owed = NULL, owed_reason = NULL WHERE f.id = family.id;
        IF family.owed IS NOT NULL THEN
            judged := ROW(family.id, queue_id, job_id, family.owed, family.owed_reason, NULL, NULL);
        END IF;
    ELSIF move IN ('{{COMPLETE}}', '{{FAIL}}') THEN
        entered := CASE move WHEN '{{COMPLETE}}' THEN 'completed' ELSE 'failed' END;
    ELSIF move <> '{{HAND_BACK}}' AND delay > 0 THEN
        entered := 'delayed';
        due_at := least(instant + delay, {{LAST_INSTANT}});
        INSERT INTO ropeway.later (ord, due_at, queue, priority, {{CARRIED}}, reason)
        VALUES (held.ord, due_at, queue_id, held.priority, {{CARRIED_OF_HELD}}, held.reason);
    ELSE
        entered := 'waiting';
        IF move <> '{{HAND_BACK}}' THEN
            held.ord := ropeway.move_to_back(queue_id, job_id, abs(held.ord));
        END IF;
        INSERT INTO ropeway.waiting (ord, queue, priority, {{CARRIED}}, reason)
        VALUES (held.ord, queue_id, held.priority, {{CARRIED_OF_HELD}}, held.reason);
    END IF;

    detail := CASE
        WHEN move = '{{COMPLETE}}' THEN '{"result":' || nullif(result, 'null') || '}'
        WHEN move = '{{FAIL}}' THEN
            '{"reason":' || to_json(reason) || ',"attempt":' || held.attempts_started
            || CASE WHEN exhausted THEN ',"exhausted":true}' ELSE '}' END
        WHEN move = '{{RETRY}}' THEN
            '{"reason":' || to_json(reason) || ',"attempt":' || held.attempts_started || ',"delay":' || delay || '}'
        WHEN due_at IS NOT NULL THEN '{"due_at":' || due_at || '}'
    END;
    IF move IN ('{{COMPLETE}}', '{{FAIL}}') THEN
        s := ropeway.count_move(s, 'active', NULL);
        RETURN;
    END IF;
    s := ropeway.add_entry(
        s, ropeway.entry(move, instant, entered::text, '["' || job_id || '",' || coalesce(detail, 'null') || ']'),
        CASE WHEN move = '{{RETRY}}' THEN {{EVENTS_OF_RETRY}} ELSE 1 END
    );
    s := ropeway.count_move(s, 'active', entered);
    s.metric_retried := coalesce(s.metric_retried, 0) + CASE move WHEN '{{RETRY}}' THEN 1 ELSE 0 END;
END
$$;
