-- Fails jobs that were not started in time, at most a batch.
-- Takes the step, the queue, and the instant.
-- Returns the step, how many there were, and news (see `end_jobs`).
CREATE OR REPLACE FUNCTION ropeway.expire_due(
    INOUT s ropeway.step, queue_id integer, instant bigint, OUT expired integer, OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    late text[];
    late_id text;
    job ropeway.whole_job;
    keep record;
    lost ropeway.active[];
    details text[];
    ages bigint[];
    counts bigint[];
    ended record;
BEGIN
    -- Not waited for: who has locked one of them moves it, or the next tick finds it.
    late := ARRAY(
        SELECT either.id
        FROM (
            SELECT * FROM (
                SELECT w.id, w.start_by, w.ord FROM ropeway.waiting AS w
                WHERE w.queue = queue_id AND w.start_by <= instant
                ORDER BY w.start_by
                LIMIT {{BATCH}}
                FOR UPDATE SKIP LOCKED
            ) AS lined
            UNION ALL
            SELECT * FROM (
                SELECT l.id, l.start_by, l.ord FROM ropeway.later AS l
                WHERE l.queue = queue_id AND l.start_by <= instant
                ORDER BY l.start_by
                LIMIT {{BATCH}}
                FOR UPDATE SKIP LOCKED
            ) AS delayed
        ) AS either
        ORDER BY either.start_by, abs(either.ord)
        LIMIT {{BATCH}}
    );
    expired := cardinality(late);
    IF expired = 0 THEN
        RETURN;
    END IF;
    FOREACH late_id IN ARRAY late LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = late_id;
        PERFORM ropeway.delete_state(job);
        s := ropeway.count_move(s, job.state, NULL);
        job.reason := '{{EXPIRED_REASON}}';
        job.token := NULL;
        keep := ropeway.stored_options(job.options, {{OPTION_DEFAULTS}});
        lost := lost || ropeway.active_row(job);
        details := details || '{"reason":"{{EXPIRED_REASON}}"}'::text;
        ages := array_append(ages, keep.age);
        counts := array_append(counts, keep.count);
    END LOOP;
    ended := ropeway.end_detached(
        s, queue_id, '{{EXPIRE}}', 'failed', lost, NULL, details, NULL, ages, counts, instant
    );
    s := ended.s;
    news := ended.news;
END
$$;
