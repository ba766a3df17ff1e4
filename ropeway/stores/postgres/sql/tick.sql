-- Does what is due: promotes delayed jobs, recovers stalled ones, removes expired ones, folds and trims.
-- Takes the queue, the stall rules (see `recover_stalled`), the defaults of options, how many events are kept, the
-- instant, and whether it may notify.
-- Returns how many jobs were promoted, the ids that stalled and that were given up, how many were removed, when the
-- next tick is needed, whether there is more to do now, the instant, and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.tick(
    queue_name text, max_stalled bigint, fails boolean, uses_attempt boolean, given_up_for text[], processes text[],
    ends text[], defaults bigint[], events_kept integer,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT promoted integer, OUT stalled text[], OUT given_up text[], OUT removed integer, OUT next_at bigint,
    OUT more boolean, OUT instant bigint, OUT wakes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    s ropeway.step;
    queue_id integer;
    ctids tid[];
    due record;
    late record;
BEGIN
    instant := ropeway.clock(at);
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    due := ropeway.promote_due(s, queue_id, instant, NULL);
    promoted := due.promoted;
    late := ropeway.recover_stalled(
        due.s, queue_id, max_stalled, fails, uses_attempt, given_up_for, processes, ends, defaults, instant
    );
    s := late.s;
    stalled := late.stalled;
    given_up := late.given_up;
    IF late.news IS NOT NULL THEN
        s := ropeway.conclude(s, queue_id, late.news, instant);
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
    wakes := ropeway.write_step(
        s, queue_id, instant, promoted > 0 OR cardinality(stalled) > 0 OR cardinality(given_up) > 0, may_wake
    );
    more := ropeway.fold(queue_id) = {{FOLD_BATCH}};
    more := ropeway.trim(queue_id, events_kept, instant) OR more
        OR promoted = {{BATCH}} OR removed = {{BATCH}} OR cardinality(stalled) + cardinality(given_up) = {{BATCH}};
    next_at := least(
        due.next_due,
        -- A parent may have been released since, to wait for its delay.
        CASE WHEN late.news IS NOT NULL THEN (
            SELECT l.due_at FROM ropeway.later AS l
            WHERE l.queue = queue_id AND l.due_at IS NOT NULL
            ORDER BY l.due_at LIMIT 1
        ) END,
        (SELECT min(a.lock_until) FROM ropeway.active AS a WHERE a.queue = queue_id),
        (
            SELECT f.expires_at FROM ropeway.finished AS f
            WHERE f.queue = queue_id AND f.expires_at < {{LAST_INSTANT}}
            ORDER BY f.expires_at LIMIT 1
        )
    );
END
$$;
