-- Records how attempts ended, and claims the next jobs.
-- Takes the queue; for plain completions their ids (each once, in order), tokens, results (null: none has one), and the
-- age and count of their retention; for other outcomes the parameters of `settle_each`, or nulls; the jobs to add (see
-- `add_of_outcomes`), or null; the request (see `claim`; no token: claim nothing); for outcomes of either kind that write marks
-- or announce something their ids (in order), tokens and marks (see `write_held`; null: they write none), and what they
-- announce (see `announce`); for each of the other outcomes the name of the mark that its job waits for (null: for none); the
-- instant, and whether it may notify.
-- Returns two letters for each plain completion (the verdict and the state before), or null if all were accepted; the
-- letters of the other outcomes; and the columns of `claim`.
CREATE OR REPLACE FUNCTION ropeway.settle(
    queue_name text, done_ids text[], done_tokens text[], done_results text[], done_age bigint, done_count bigint,
    other_ids text[], other_tokens text[], moves text[], results text[], reasons text[], traces text[], delays bigint[],
    ages bigint[], counts bigint[], exhausted boolean[], stack_traces integer[], adds text,
    token text, worker text, most integer, lock bigint, names text[], repeats boolean, isolates boolean,
    from_priority integer, from_ord bigint, from_due bigint,
    marked_ids text[] DEFAULT NULL, marked_tokens text[] DEFAULT NULL, marks text[] DEFAULT NULL, kinds text[] DEFAULT NULL,
    details text[] DEFAULT NULL, listed text[] DEFAULT NULL, positions text[] DEFAULT NULL, awaited text[] DEFAULT NULL,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT done_letters text, OUT other_letters text, OUT instant bigint, OUT again_at bigint, OUT ids text[], OUT job_names text[], OUT datas text[],
    OUT options text[], OUT priorities integer[], OUT ords bigint[], OUT created bigint[], OUT pasts text[],
    OUT held bigint[], OUT passed bigint, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    queue ropeway.queue;
    done record;
    other record;
    taken record;
    has_new_work boolean := false;
    news ropeway.news[];
    judged ropeway.judgement[];
    lowest bigint;
    accepted boolean[];
    -- Plain completions that write no marks: their notices are known to be accepted when they have ended.
    announces_late CONSTANT boolean := marked_ids IS NOT NULL AND marks IS NULL AND other_ids IS NULL;
    notices ropeway.step;
BEGIN
    instant := ropeway.clock(at);
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF NOT FOUND THEN
        done_letters := repeat('m-', cardinality(done_ids));
        other_letters := repeat('m-', cardinality(other_ids));
        RETURN;
    END IF;

    IF adds LIKE '%"dedupe\\"%' THEN
        PERFORM ropeway.lock_with_holders_of(queue.id, done_ids || other_ids, adds);
    END IF;
    -- Each expression is set up again in every call, so plain completions meet few.
    IF NOT announces_late AND (marked_ids IS NOT NULL OR cardinality(other_ids) > 0) THEN
        IF
            cardinality(other_ids) > 0 AND (marked_ids IS NOT NULL OR awaited IS NOT NULL OR cardinality(done_ids) > 0)
            OR cardinality(marked_ids) < cardinality(done_ids)
        THEN
            -- All locks in the order of ids, so that no two calls wait for each other; and before anything looks for marks.
            PERFORM FROM ropeway.active AS a
            WHERE a.queue = queue.id AND a.id = ANY (done_ids || other_ids) ORDER BY a.id FOR UPDATE;
        END IF;
        IF marked_ids IS NOT NULL THEN
            accepted := ropeway.write_held(queue.id, marked_ids, marked_tokens, NULL, marks, instant);
            s := ropeway.announce(s, marked_ids, kinds, details, listed, positions, accepted, instant);
        END IF;
        FOR n IN 1 .. coalesce(cardinality(awaited), 0) LOOP
            IF awaited[n] IS NOT NULL AND ropeway.has_mark(queue.id, other_ids[n], awaited[n]) THEN
                -- As `settle_one` takes it.
                delays[n] := CASE WHEN delays[n] < 0 THEN -1 ELSE 0 END;
                awaited[n] := NULL;
            END IF;
        END LOOP;
        IF 0 > ANY (delays) THEN
            -- What is counted here is what `conclude` counts down, in its order.
            lowest := ropeway.lock_families(queue.id, done_ids || other_ids);
        END IF;
    END IF;
    IF cardinality(done_ids) > 0 THEN
        IF queue.delete_after IS NOT NULL AND ropeway.is_default_keep(done_age, done_count) THEN
            done_age := {{LAST_INSTANT}};
            done_count := NULL;
        END IF;
        done := ropeway.end_jobs(
            s, queue.id, '{{COMPLETE}}', 'completed', done_age, done_count, done_ids, done_tokens, NULL, done_results, NULL, NULL,
            instant
        );
        s := done.s;
        news := done.news;
        IF done.ended IS NULL OR cardinality(done.ended) < cardinality(done_ids) THEN
            -- Not held under that token; or a renewal came between.
            done := ropeway.settle_not_held(
                s, queue.id, done_ids, done_tokens, done_results, done_age, done_count, done.ended, instant
            );
            s := done.s;
            news := news || done.news;
            done_letters := done.letters;
        END IF;
        IF announces_late THEN
            IF done_letters IS NOT NULL THEN
                accepted := ARRAY(
                    SELECT substr(done_letters, 2 * array_position(done_ids, marked.id) - 1, 2) = 'da'
                    FROM unnest(marked_ids) WITH ORDINALITY AS marked (id, n) ORDER BY marked.n
                );
            END IF;
            notices := ropeway.announce(notices, marked_ids, kinds, details, listed, positions, accepted, instant);
            s.entries := concat_ws(',', notices.entries, s.entries);
            s.events := coalesce(s.events, 0) + coalesce(notices.events, 0);
        END IF;
    END IF;
    IF cardinality(other_ids) > 0 THEN
        other := ropeway.settle_each(
            s, queue.id, other_ids, other_tokens, moves, results, reasons, traces, delays, ages, counts, exhausted,
            stack_traces, instant
        );
        s := other.s;
        news := news || other.news;
        judged := other.judged;
        other_letters := other.letters;
        has_new_work := other.back > 0;
        FOR n IN 1 .. coalesce(cardinality(awaited), 0) LOOP
            IF awaited[n] IS NOT NULL AND substr(other_letters, 2 * n - 1, 2) = 'da' THEN
                UPDATE ropeway.later AS l SET awaits = awaited[n]
                WHERE l.queue = queue.id AND l.id = other_ids[n] AND l.due_at IS NOT NULL;
            END IF;
        END LOOP;
    END IF;
    IF news IS NOT NULL OR judged IS NOT NULL THEN
        s := ropeway.conclude(s, queue.id, news, instant, judged, lowest);
        IF s.waiting > 0 THEN
            -- Parents that were released are in line ahead of their children, which were claimed before (`scan_starts.py`).
            has_new_work := true;
            from_priority := NULL;
            from_ord := NULL;
        END IF;
    END IF;
    has_new_work := has_new_work OR (queue.max_active IS NOT NULL AND s.active < 0);

    IF adds IS NOT NULL THEN
        wakes := ropeway.add_of_outcomes(
            adds, concat(coalesce(done_letters, repeat('da', cardinality(done_ids))), other_letters), instant, may_wake
        );
    END IF;

    IF token IS NOT NULL THEN
        taken := ropeway.claim_jobs(
            s, queue, instant, token, worker, most, lock, names, repeats, isolates, from_priority, from_ord, from_due
        );
        -- More became due than were taken.
        has_new_work := has_new_work OR (
            coalesce((taken.s).delayed, 0) < coalesce(s.delayed, 0) AND coalesce((taken.s).waiting, 0) > coalesce(s.waiting, 0)
        );
        s := taken.s;
        again_at := taken.again_at;
        ids := taken.ids;
        job_names := taken.job_names;
        datas := taken.datas;
        options := taken.options;
        priorities := taken.priorities;
        ords := taken.ords;
        created := taken.created;
        pasts := taken.pasts;
        held := taken.held;
        passed := taken.passed;
    END IF;
    wakes := wakes || ropeway.write_step(s, queue.id, instant, has_new_work, may_wake);
END
$$;
