-- Does what is due: promotes delayed jobs, recovers stalled ones, fails those that expired, removes old ones, frees old dedupe
-- keys, folds and trims.
-- Takes the queue, the stall rules (see `recover_stalled`), the defaults of options, how many events are kept, the
-- instant, and whether it may notify.
-- Returns how many jobs were promoted, the ids that stalled and that were given up, how many were removed, when the
-- next tick is needed, whether there is more to do now, the instant, how many jobs expired and became stale, the schedules
-- that are due (ids, values, due times and versions), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.tick(
    queue_name text, max_stalled bigint, fails boolean, uses_attempt boolean, given_up_for text[], processes text[],
    ends text[], defaults bigint[], events_kept integer,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT promoted integer, OUT stalled text[], OUT given_up text[], OUT removed integer, OUT next_at bigint,
    OUT more boolean, OUT instant bigint, OUT expired integer, OUT stale integer, OUT due_ids text[], OUT due_values text[],
    OUT due_times bigint[], OUT due_versions bigint[], OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    queue_id integer;
    has_stages boolean;
    staged record;
    ctids tid[];
    due record;
    late record;
    missed record;
    news ropeway.news[];
BEGIN
    instant := ropeway.clock(at);
    SELECT q.id, q.stale_after IS NOT NULL OR q.delete_after IS NOT NULL INTO queue_id, has_stages
    FROM ropeway.queue AS q WHERE q.name = queue_name;
    due := ropeway.promote_due(s, queue_id, instant, NULL);
    promoted := due.promoted;
    late := ropeway.recover_stalled(
        due.s, queue_id, max_stalled, fails, uses_attempt, given_up_for, processes, ends, defaults, instant
    );
    s := late.s;
    stalled := late.stalled;
    given_up := late.given_up;
    missed := ropeway.expire_due(s, queue_id, instant);
    s := missed.s;
    expired := missed.expired;
    news := late.news || missed.news;
    IF news IS NOT NULL THEN
        s := ropeway.conclude(s, queue_id, news, instant);
    END IF;
    ctids := ARRAY(
        SELECT f.ctid FROM ropeway.finished AS f
        WHERE f.queue = queue_id AND f.expires_at <= instant AND f.expires_at < {{LAST_INSTANT}}
        ORDER BY f.expires_at
        LIMIT {{BATCH}}
        FOR UPDATE SKIP LOCKED
    );
    removed := cardinality(ctids);
    IF removed > 0 THEN
        s := ropeway.drop_final(s, queue_id, ctids, instant);
    END IF;
    more := removed = {{BATCH}};
    stale := 0;
    IF has_stages THEN
        staged := ropeway.apply_stages(s, queue_id, instant);
        s := staged.s;
        stale := staged.stale;
        removed := removed + staged.deleted;
        more := more OR staged.more;
        next_at := staged.next_at;
    END IF;
    -- No job waits for the holder of a key that is held for a time (see `take_key`).
    DELETE FROM ropeway.held_key AS k WHERE k.ctid = ANY (ARRAY(
        SELECT old.ctid FROM ropeway.held_key AS old
        WHERE old.queue = queue_id AND old.until <= instant
        ORDER BY old.until
        LIMIT {{BATCH}}
        FOR UPDATE SKIP LOCKED
    ));
    wakes := ropeway.write_step(
        s, queue_id, instant, promoted > 0 OR cardinality(stalled) > 0 OR cardinality(given_up) > 0, may_wake
    );
    more := ropeway.fold(queue_id) = {{FOLD_BATCH}} OR more;
    more := ropeway.trim(queue_id, events_kept, instant) OR more
        OR promoted = {{BATCH}} OR expired = {{BATCH}}
        OR cardinality(stalled) + cardinality(given_up) = {{BATCH}};
    next_at := least(
        next_at,
        -- Another one than before if a parent was released since, to wait for its delay, or one of them has expired.
        CASE WHEN news IS NULL AND expired = 0 THEN due.next_due ELSE (
            SELECT l.due_at FROM ropeway.later AS l
            WHERE l.queue = queue_id AND l.due_at IS NOT NULL
            ORDER BY l.due_at LIMIT 1
        ) END,
        (
            SELECT w.start_by FROM ropeway.waiting AS w
            WHERE w.queue = queue_id AND w.start_by IS NOT NULL
            ORDER BY w.start_by LIMIT 1
        ),
        (
            SELECT l.start_by FROM ropeway.later AS l
            WHERE l.queue = queue_id AND l.start_by IS NOT NULL
            ORDER BY l.start_by LIMIT 1
        ),
        (
            SELECT e.next_at FROM ropeway.schedule AS e
            WHERE e.queue = queue_id AND e.next_at IS NOT NULL
            ORDER BY e.next_at LIMIT 1
        ),
        (SELECT min(a.lock_until) FROM ropeway.active AS a WHERE a.queue = queue_id),
        (
            SELECT f.expires_at FROM ropeway.finished AS f
            WHERE f.queue = queue_id AND f.expires_at < {{LAST_INSTANT}}
            ORDER BY f.expires_at LIMIT 1
        )
    );
    SELECT array_agg(ready.id), array_agg(ready.value), array_agg(ready.next_at), array_agg(ready.version)
    INTO due_ids, due_values, due_times, due_versions
    FROM (
        SELECT e.* FROM ropeway.schedule AS e
        WHERE e.queue = queue_id AND e.next_at <= instant
        ORDER BY e.next_at, e.id
        LIMIT {{DUE_SCHEDULES}}
    ) AS ready;
    IF next_at <= instant AND due_ids IS NULL AND NOT more THEN
        -- Others have locked what is due.
        next_at := instant + {{LOOK_AGAIN}};
    END IF;
END
$$;
