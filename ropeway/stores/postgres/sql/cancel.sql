-- Cancels jobs that are not final, running ones included.
-- Takes the queue, ids, the reason (or null), the defaults of options, the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state before), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.cancel(
    queue_name text, ids text[], reason text, defaults bigint[], at bigint DEFAULT NULL,
    may_wake boolean DEFAULT NULL, OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue ropeway.queue;
    held text[];
    job ropeway.whole_job;
    prev ropeway.state;
    keep record;
    one ropeway.active;
    cancelled ropeway.active[];
    cancelled_ids text[] := '{}';
    details text[];
    ages bigint[];
    counts bigint[];
    revoked text[];
    tokens text[];
    ended record;
BEGIN
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue.id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        IF ids[n] = ANY (cancelled_ids) THEN
            letters := letters || 'd' || ropeway.state_letter('cancelled');
            CONTINUE;
        END IF;
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue.id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        END IF;
        prev := job.state;
        letters := letters || CASE WHEN prev IN ('completed', 'failed') THEN 'r' ELSE 'd' END || ropeway.state_letter(prev);
        CONTINUE WHEN prev IN ({{FINAL}});
        IF prev = 'active' THEN
            revoked := revoked || job.id;
            tokens := tokens || job.token;
        END IF;
        PERFORM ropeway.delete_state(job);
        keep := ropeway.stored_options(job.options, defaults);
        one := ropeway.active_row(job);
        one.reason := cancel.reason;
        -- The worker still runs the handler: without its token a late result is refused.
        one.token := NULL;
        cancelled := cancelled || one;
        cancelled_ids := cancelled_ids || job.id;
        ages := array_append(ages, keep.age);
        counts := array_append(counts, keep.count);
        details := details || ('{"prev":"' || prev || '"}');
        s := ropeway.count_move(s, prev, NULL);
    END LOOP;
    IF cancelled IS NOT NULL THEN
        ended := ropeway.end_detached(
            s, queue.id, '{{CANCEL}}', 'cancelled', cancelled, NULL, details, '{"reason":' || to_json(reason) || '}', ages, counts,
            instant
        );
        s := ended.s;
        IF ended.news IS NOT NULL THEN
            s := ropeway.conclude(s, queue.id, ended.news, instant);
        END IF;
    END IF;
    IF revoked IS NOT NULL THEN
        PERFORM ropeway.revoke_locks(queue.id, revoked, tokens, 'cancelled', instant);
    END IF;
    wakes := ropeway.write_step(s, queue.id, instant, revoked IS NOT NULL AND queue.max_active IS NOT NULL, may_wake);
END
$$;
