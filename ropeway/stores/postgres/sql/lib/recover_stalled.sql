-- Moves active jobs whose lock expired to waiting, or gives them up; at most a batch.
-- Takes the step, the queue, the stall rules (how often a job may stall, whether a stall fails it, whether it uses an
-- attempt), the beginnings of reasons of jobs that are given up (too often, in the last attempt, at once), processes
-- that are known to have ended, and how; the defaults of options, and the instant.
-- Returns the step, the ids of both, and news for parents (see `end_jobs`).
CREATE OR REPLACE FUNCTION ropeway.recover_stalled(
    INOUT s ropeway.step, queue_id integer, max_stalled bigint, fails boolean, uses_attempt boolean, given_up_for text[],
    processes text[], ends text[], defaults bigint[], instant bigint, OUT stalled text[], OUT given_up text[],
    OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    late record;
    job ropeway.whole_job;
    said record;
    -- What ran out: a position in given_up_for; null if nothing did, or another job of its process may be to blame.
    lost_by integer;
    is_spared boolean;
    ended text;
    detail text;
    waiting text[];
    lost ropeway.active[];
    ended_jobs record;
    details text[];
    ages bigint[];
    counts bigint[];
BEGIN
    stalled := '{}';
    given_up := '{}';
    -- A lock that was renewed after now is one of before the server's clock was set back: it lasts its time from now on.
    -- A live worker renews it. {{CLOCK_SLACK}} ms are for renewals while this call is under way.
    UPDATE ropeway.active AS a SET lock_until = instant + a.lock_until - a.renewed_at, renewed_at = instant
    WHERE a.ctid = ANY (ARRAY(
        SELECT ahead.ctid FROM ropeway.active AS ahead
        WHERE ahead.queue = queue_id AND ahead.renewed_at > instant + {{CLOCK_SLACK}}
        FOR UPDATE SKIP LOCKED
    ));
    FOR late IN
        SELECT a.id, a.alone FROM ropeway.active AS a
        WHERE a.queue = queue_id AND a.lock_until <= instant
        ORDER BY a.lock_until, a.started_at, abs(a.ord)
        LIMIT {{BATCH}}
        FOR UPDATE SKIP LOCKED
    LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = late.id;
        said := ropeway.stored_options(job.options, defaults);
        -- As `judge_stall` and `stall_reason` of job/stalls.py.
        lost_by := CASE
            WHEN fails THEN 3
            WHEN job.stalled_count + 1 > max_stalled THEN 1
            WHEN uses_attempt AND job.attempts_made + 1 >= said.attempts THEN 2
        END;
        is_spared := lost_by < 3 AND job.stalled_count > 0 AND NOT late.alone;
        IF is_spared THEN
            lost_by := NULL;
        ELSIF uses_attempt THEN
            job.attempts_made := job.attempts_made + 1;
        END IF;
        job.stalled_count := job.stalled_count + 1;
        ended := ends[array_position(processes, substring(job.worker FROM '^(.*):'))];
        job.reason := format(
            CASE WHEN ended IS NULL THEN '{{STALL_REASON}}' ELSE '{{STALL_REASON_WITH_END}}' END,
            coalesce(given_up_for[lost_by], '{{STALLED}}'), job.worker,
            to_char(to_timestamp(job.renewed_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), ended
        );
        PERFORM ropeway.add_failure(
            abs(job.ord), job.attempts_started, job.started_at, job.worker, job.reason, '',
            said.stack_traces::integer, instant
        );
        PERFORM ropeway.delete_state(job);
        job.token := NULL;
        detail := '"worker":' || to_json(job.worker) || ',"stalled_count":' || job.stalled_count;
        IF lost_by IS NOT NULL THEN
            lost := lost || ropeway.active_row(job);
            ages := array_append(ages, said.age);
            counts := array_append(counts, said.count);
            details := details || ('{' || detail || ',"reason":' || to_json(job.reason)
                || CASE WHEN lost_by = 2 THEN ',"exhausted":true}' ELSE '}' END);
            given_up := given_up || job.id;
        ELSE
            PERFORM ropeway.insert_waiting(job);
            stalled := stalled || job.id;
            waiting := waiting || ('["' || job.id || '",{' || detail || '}]');
        END IF;
    END LOOP;
    IF waiting IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{STALL}}', instant, 'waiting', array_to_string(waiting, ',')), {{EVENTS_OF_STALL}} * cardinality(waiting)
        );
        s := ropeway.count_move(s, 'active', 'waiting', cardinality(waiting));
    END IF;
    IF lost IS NOT NULL THEN
        s := ropeway.count_move(s, 'active', NULL, cardinality(lost));
        ended_jobs := ropeway.end_detached(
            s, queue_id, '{{GIVE_UP}}', 'failed', lost, NULL, details, NULL, ages, counts, instant
        );
        s := ended_jobs.s;
        news := ended_jobs.news;
    END IF;
    s.metric_stalled := cardinality(stalled) + cardinality(given_up);
END
$$;
