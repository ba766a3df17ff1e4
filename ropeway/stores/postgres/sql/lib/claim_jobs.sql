-- Claims waiting jobs for one worker, after promoting the delayed ones that are due, and failing those that expired.
-- Takes the step, the queue's row, the instant, and the request: token, worker, how many, how long the lock lasts,
-- names (null: any), whether it is a repeat, whether the claimer marks what runs alone, and where the scan starts:
-- behind a priority and ord, and from a due_at (nulls: at the very start).
-- Returns the step, when a next claim may find more, how many dead index entries it passed, and the jobs as an array
-- for each field. An array is null if all jobs have the default: no options, priority 0, never run before, no tags, no
-- parents, no children, no extras and no marks, locked now.
CREATE OR REPLACE FUNCTION ropeway.claim_jobs(
    INOUT s ropeway.step, queue ropeway.queue, instant bigint, token text, worker text, most integer, lock bigint,
    names text[], repeats boolean, isolates boolean, from_priority integer, from_ord bigint, from_due bigint,
    OUT again_at bigint, OUT ids text[], OUT job_names text[], OUT datas text[], OUT options text[],
    OUT priorities integer[], OUT ords bigint[], OUT created bigint[], OUT pasts text[], OUT held bigint[],
    OUT passed bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    room integer := most;
    active_now integer;
    ctids tid[];
    jobs text;
    amount integer;
    due record;
    late record;
    has_options boolean;
    has_priority boolean;
BEGIN
    -- The first try of a repeated claim may still be under way on another connection: the second one sees all that the first did.
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.claim'), hashtext(token));
    IF repeats THEN
        SELECT
            array_agg(mine.id), array_agg(mine.name), array_agg(mine.data), array_agg(mine.options),
            array_agg(mine.priority), array_agg(mine.ord), array_agg(mine.created_at), array_agg(mine.past),
            array_agg(ARRAY[mine.started_at, mine.renewed_at, mine.lock_until])
        INTO ids, job_names, datas, options, priorities, ords, created, pasts, held
        FROM (
            SELECT
                a.*, job.data, job.options, job.created_at,
                json_build_array(
                    a.attempts_made, a.attempts_started, a.stalled_count, a.reason, a.progress, job.tags,
                    job.parents::json, (SELECT f.total FROM ropeway.family AS f WHERE f.id = job.family), job.extras::json,
                    ropeway.marks_of(job.older_marks, a.marks)::json
                )::text AS past
            FROM ropeway.active AS a
            JOIN ropeway.job ON job.queue = a.queue AND job.id = a.id
            WHERE a.queue = queue.id AND a.token = claim_jobs.token
            ORDER BY a.priority, a.ord
        ) AS mine;
        IF ids IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;

    from_priority := coalesce(from_priority, -2147483648);
    from_ord := coalesce(from_ord, -9223372036854775808);
    SELECT later.due_at INTO again_at FROM ropeway.later
    WHERE later.queue = queue.id AND later.due_at >= coalesce(from_due, 0)
    ORDER BY later.due_at LIMIT 1;
    IF again_at <= instant THEN
        due := ropeway.promote_due(s, queue.id, instant, from_due);
        s := due.s;
        again_at := due.next_due;
    END IF;
    IF queue.has_deadlines THEN
        late := ropeway.expire_due(s, queue.id, instant);
        IF late.expired > 0 THEN
            s := late.s;
            IF late.news IS NOT NULL THEN
                s := ropeway.conclude(s, queue.id, late.news, instant);
            END IF;
            IF late.expired = {{BATCH}} THEN
                -- There may be more, which must not be started.
                again_at := instant;
                RETURN;
            END IF;
            SELECT CASE WHEN later.due_at <= instant THEN instant + {{LOOK_AGAIN}} ELSE later.due_at END INTO again_at
            FROM ropeway.later
            WHERE later.queue = queue.id AND later.due_at >= coalesce(from_due, 0)
            ORDER BY later.due_at LIMIT 1;
        END IF;
    END IF;
    IF queue.max_active IS NOT NULL THEN
        -- Claims under a limit take turns. What they count is read after they had to wait.
        SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.id = queue.id FOR UPDATE;
        SELECT count(*) INTO active_now FROM ropeway.active AS a WHERE a.queue = queue.id;
        room := least(most, queue.max_active - active_now);
    END IF;
    IF queue.is_paused OR room <= 0 THEN
        RETURN;
    END IF;

    IF names IS NULL AND queue.paused_names = '{}' THEN
        ctids := ARRAY(
            SELECT w.ctid FROM ropeway.waiting AS w
            WHERE w.queue = queue.id AND (w.priority, w.ord) > (from_priority, from_ord)
            ORDER BY w.priority, w.ord
            LIMIT room
            FOR UPDATE SKIP LOCKED
        );
    ELSIF EXISTS (
        SELECT FROM (
            SELECT w.name FROM ropeway.waiting AS w
            WHERE w.queue = queue.id AND (w.priority, w.ord) > (from_priority, from_ord)
            ORDER BY w.priority, w.ord
            LIMIT room
        ) AS urgent
        WHERE urgent.name <> ALL (names) OR urgent.name = ANY (queue.paused_names)
    ) THEN
        ctids := ropeway.select_by_name(queue.id, room, names, queue.paused_names, from_priority, from_ord);
    ELSE
        ctids := ARRAY(
            SELECT w.ctid FROM ropeway.waiting AS w
            WHERE w.queue = queue.id AND (w.priority, w.ord) > (from_priority, from_ord)
                AND (names IS NULL OR w.name = ANY (names)) AND w.name <> ALL (queue.paused_names)
            ORDER BY w.priority, w.ord
            LIMIT room
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    amount := cardinality(ctids);
    -- Dead index entries that the scan passed, because an older transaction may still see them (`scan_starts.py`).
    passed := pg_stat_get_xact_tuples_returned('ropeway.waiting_in_line'::regclass)
        + pg_stat_get_xact_tuples_returned('ropeway.waiting_by_name'::regclass)
        + pg_stat_get_xact_tuples_returned('ropeway.later_due'::regclass) - amount;
    IF amount = 0 THEN
        RETURN;
    END IF;

    WITH gone AS (
        DELETE FROM ropeway.waiting AS w WHERE w.ctid = ANY (ctids) RETURNING w.*
    ), taken AS (
        INSERT INTO ropeway.active (
            ord, started_at, renewed_at, lock_until, queue, priority, attempts_made, attempts_started, stalled_count,
            logged, alone, id, name, token, worker, reason, progress, has_ties, marks
        )
        SELECT
            gone.ord, instant, instant, instant + lock, gone.queue, gone.priority, gone.attempts_made,
            gone.attempts_started + 1, gone.stalled_count, gone.logged, NOT isolates, gone.id, gone.name, claim_jobs.token,
            claim_jobs.worker, gone.reason, gone.progress, gone.has_ties, gone.marks
        FROM gone
    )
    SELECT
        array_agg(mine.id), array_agg(mine.name), array_agg(mine.data), array_agg(mine.options),
        array_agg(mine.priority), array_agg(mine.ord), array_agg(mine.created_at),
        string_agg('["' || mine.id || '",null]', ','),
        bool_or(mine.options <> '{}'), bool_or(mine.priority <> 0),
        CASE WHEN bool_or(
            mine.attempts_started > 0 OR mine.progress IS NOT NULL OR mine.tags IS NOT NULL OR mine.parents IS NOT NULL
            OR mine.family IS NOT NULL OR mine.extras IS NOT NULL OR mine.marks IS NOT NULL
            OR mine.older_marks IS NOT NULL
        ) THEN array_agg(
            json_build_array(
                mine.attempts_made, mine.attempts_started + 1, mine.stalled_count, mine.reason, mine.progress, mine.tags,
                mine.parents::json, mine.children, mine.extras::json,
                CASE
                    WHEN mine.marks IS NOT NULL OR mine.older_marks IS NOT NULL
                        THEN ropeway.marks_of(mine.older_marks, mine.marks)::json
                END
            )::text
        ) END
    INTO ids, job_names, datas, options, priorities, ords, created, jobs, has_options, has_priority, pasts
    FROM (
        SELECT
            gone.id, gone.name, gone.priority, gone.ord, gone.attempts_made, gone.attempts_started,
            gone.stalled_count, gone.reason, gone.progress, gone.marks, job.data, job.options, job.created_at, job.tags, job.parents,
            job.extras, job.older_marks, job.family, CASE
                WHEN job.family IS NOT NULL THEN (SELECT f.total FROM ropeway.family AS f WHERE f.id = job.family)
            END AS children
        FROM gone
        -- LATERAL and LIMIT: each by its key, whatever the statistics of the table.
        CROSS JOIN LATERAL (
            SELECT j.data, j.options, j.created_at, j.tags, j.parents, j.family, j.extras, j.older_marks
            FROM ropeway.job AS j
            WHERE j.queue = gone.queue AND j.id = gone.id
            LIMIT 1
        ) AS job
        ORDER BY gone.priority, gone.ord
    ) AS mine;
    IF NOT has_options THEN
        options := NULL;
    END IF;
    IF NOT has_priority THEN
        priorities := NULL;
    END IF;
    -- What `add_entry` and `count_move` do. Each expression is set up again in every call, so a fast claim has few.
    s.entries := concat_ws(
        ',', s.entries, ropeway.entry('{{CLAIM}}', instant, 'active', jobs, '{"worker":' || to_json(worker) || '}')
    );
    s.events := coalesce(s.events, 0) + amount;
    s.waiting := coalesce(s.waiting, 0) - amount;
    s.active := coalesce(s.active, 0) + amount;
    IF amount = most THEN
        again_at := NULL;
    END IF;
END
$$;
