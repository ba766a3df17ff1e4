-- Settles one attempt, however it ended.
-- Takes the step, the queue, the job's id, token, move, result, reason, trace, delay, when it expires, whether no attempts remained,
-- how many failures it keeps, and the instant.
-- Returns the step, two letters (the verdict and the state before), and the state that it entered.
CREATE OR REPLACE FUNCTION ropeway.settle_one(
    INOUT s ropeway.step, queue_id integer, job_id text, token text, move text, result text, reason text, trace text,
    delay bigint, expires_at bigint, exhausted boolean, stack_traces integer, instant bigint,
    OUT letters text, OUT entered ropeway.state
)
LANGUAGE plpgsql AS $$
DECLARE
    held ropeway.active;
    due_at bigint;
    detail text;
BEGIN
    SELECT a.* INTO held FROM ropeway.active AS a
    WHERE a.queue = queue_id AND a.id = job_id AND a.token = settle_one.token
    FOR UPDATE;
    IF NOT FOUND THEN
        letters := ropeway.standing(queue_id, job_id, token, CASE move
            WHEN 'complete' THEN '{completed}'
            WHEN 'fail' THEN '{failed}'
            WHEN 'retry' THEN '{waiting,delayed}'
            WHEN 'postpone' THEN '{waiting,delayed,waiting-children}'
            ELSE '{waiting}'
        END::ropeway.state[]);
        IF letters LIKE 'l%' THEN
            detail := '["' || job_id || '",{"move":"' || move || '"}]';
            s := ropeway.told(s, ropeway.entry('lock-lost', instant, NULL, detail), 1);
        END IF;
        RETURN;
    END IF;
    letters := 'da';
    DELETE FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = job_id;

    IF move IN ('retry', 'fail') THEN
        PERFORM ropeway.fail_attempt(
            abs(held.ord), held.attempts_started, held.worker, reason, trace, stack_traces, instant
        );
        held.attempts_made := held.attempts_made + 1;
        held.reason := reason;
    END IF;
    IF move IN ('complete', 'fail') THEN
        entered := CASE move WHEN 'complete' THEN 'completed' ELSE 'failed' END;
        INSERT INTO ropeway.finished (
            seq, finished_at, expires_at, state, queue, attempts_made, attempts_started, stalled_count, logged, id, name,
            started_at, renewed_at, token, worker, reason, progress, result
        )
        VALUES (
            abs(held.ord), instant, settle_one.expires_at, entered, queue_id, held.attempts_made,
            held.attempts_started, held.stalled_count, held.logged, held.id, held.name, held.started_at,
            held.renewed_at, held.token, held.worker, CASE move WHEN 'fail' THEN held.reason END, held.progress,
            CASE move WHEN 'complete' THEN settle_one.result END
        );
    ELSIF move <> 'hand back' AND delay > 0 THEN
        entered := 'delayed';
        due_at := least(instant + delay, 253402300799999);
        INSERT INTO ropeway.later (
            ord, due_at, queue, priority, attempts_made, attempts_started, stalled_count, logged, id, name,
            started_at, renewed_at, token, worker, reason, progress
        )
        VALUES (
            held.ord, due_at, queue_id, held.priority, held.attempts_made, held.attempts_started,
            held.stalled_count, held.logged, held.id, held.name, held.started_at, held.renewed_at, held.token,
            held.worker, held.reason, held.progress
        );
    ELSE
        entered := 'waiting';
        IF move <> 'hand back' THEN
            held.ord := ropeway.go_behind(queue_id, job_id, abs(held.ord));
        END IF;
        INSERT INTO ropeway.waiting (
            ord, queue, priority, attempts_made, attempts_started, stalled_count, logged, id, name,
            started_at, renewed_at, token, worker, reason, progress
        )
        VALUES (
            held.ord, queue_id, held.priority, held.attempts_made, held.attempts_started, held.stalled_count,
            held.logged, held.id, held.name, held.started_at, held.renewed_at, held.token, held.worker, held.reason,
            held.progress
        );
    END IF;

    detail := CASE
        WHEN move = 'complete' THEN '{"result":' || nullif(result, 'null') || '}'
        WHEN move = 'fail' THEN
            '{"reason":' || to_json(reason) || ',"attempt":' || held.attempts_started
            || CASE WHEN exhausted THEN ',"exhausted":true}' ELSE '}' END
        WHEN move = 'retry' THEN
            '{"reason":' || to_json(reason) || ',"attempt":' || held.attempts_started || ',"delay":' || delay || '}'
        WHEN due_at IS NOT NULL THEN '{"due_at":' || due_at || '}'
    END;
    s := ropeway.told(
        s, ropeway.entry(move, instant, entered::text, '["' || job_id || '",' || coalesce(detail, 'null') || ']'),
        CASE WHEN move = 'retry' THEN 2 ELSE 1 END
    );
    s := ropeway.moved(s, 'active', entered);
    s.metric_completed := coalesce(s.metric_completed, 0) + CASE move WHEN 'complete' THEN 1 ELSE 0 END;
    s.metric_failed := coalesce(s.metric_failed, 0) + CASE move WHEN 'fail' THEN 1 ELSE 0 END;
    s.metric_retried := coalesce(s.metric_retried, 0) + CASE move WHEN 'retry' THEN 1 ELSE 0 END;
END
$$;
