-- Settles outcomes of which some write marks, or postpone a job until there is one.
-- Takes the ids, tokens and marks of the outcomes that write some (see `write_held`), what they announce (see `announce`), and
-- for each of the other outcomes the name of the mark that its job waits for (null: for none); then the parameters of `settle`.
-- Returns what `settle` does.
CREATE OR REPLACE FUNCTION ropeway.settle_with_marks(
    marked_ids text[], marked_tokens text[], marks text[], kinds text[], listed text[], positions text[], awaits text[],
    queue_name text, done_ids text[], done_tokens text[], done_results text[], done_age bigint, done_count bigint,
    other_ids text[], other_tokens text[], moves text[], results text[], reasons text[], traces text[], delays bigint[],
    ages bigint[], counts bigint[], exhausted boolean[], stack_traces integer[], adds text,
    token text, worker text, most integer, lock bigint, names text[], repeats boolean, isolates boolean,
    from_priority integer, from_ord bigint, from_due bigint,
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
    queue_id integer;
    accepted boolean[];
    marks_wakes text[];
BEGIN
    instant := ropeway.clock(at);
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF adds LIKE '%"dedupe\\"%' THEN
        PERFORM ropeway.lock_with_holders_of(queue_id, done_ids || other_ids, adds);
    END IF;
    IF cardinality(other_ids) > 0 OR cardinality(done_ids) > cardinality(marked_ids) THEN
        -- All locks in the order of ids, so that no two calls wait for each other.
        PERFORM FROM ropeway.active AS a
        WHERE a.queue = queue_id AND a.id = ANY (done_ids || other_ids) ORDER BY a.id FOR UPDATE;
    END IF;
    IF marked_ids IS NOT NULL THEN
        accepted := ropeway.write_held(queue_id, marked_ids, marked_tokens, NULL, marks, instant);
        s := ropeway.announce(s, kinds, listed, positions, accepted, cardinality(marked_ids), instant);
        marks_wakes := ropeway.write_step(s, queue_id, instant, false, may_wake);
    END IF;
    FOR n IN 1 .. coalesce(cardinality(awaits), 0) LOOP
        IF awaits[n] IS NOT NULL AND ropeway.has_mark(queue_id, other_ids[n], awaits[n]) THEN
            -- As `settle_one` takes it.
            delays[n] := CASE WHEN delays[n] < 0 THEN -1 ELSE 0 END;
            awaits[n] := NULL;
        END IF;
    END LOOP;
    SELECT
        settled.done_letters, settled.other_letters, settled.again_at, settled.ids, settled.job_names, settled.datas,
        settled.options, settled.priorities, settled.ords, settled.created, settled.pasts, settled.held, settled.passed,
        marks_wakes || settled.wakes
    INTO
        done_letters, other_letters, again_at, ids, job_names, datas, options, priorities, ords, created, pasts, held, passed,
        wakes
    FROM ropeway.settle(
        queue_name, done_ids, done_tokens, done_results, done_age, done_count, other_ids, other_tokens, moves, results, reasons,
        traces, delays, ages, counts, exhausted, stack_traces, adds, token, worker, most, lock, names, repeats, isolates,
        from_priority, from_ord, from_due, instant, may_wake
    ) AS settled;
    FOR n IN 1 .. coalesce(cardinality(awaits), 0) LOOP
        IF awaits[n] IS NOT NULL AND substr(other_letters, 2 * n - 1, 2) = 'da' THEN
            UPDATE ropeway.later AS l SET awaits = settle_with_marks.awaits[n]
            WHERE l.queue = queue_id AND l.id = other_ids[n] AND l.due_at IS NOT NULL;
        END IF;
    END LOOP;
END
$$;
