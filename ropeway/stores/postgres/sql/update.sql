-- Changes the progress, data, log or marks of jobs, and whether they run alone; `update_held` does what is frequent.
-- Takes the queue, and for each update the job's id, token (null: any job that is not final), progress, data, log lines
-- (json, a list; null: none), how many lines to keep, whether it runs alone (null: unchanged), and whether its stalls no
-- longer count; the children that jobs get (see `give_children`; null: none); the marks of each (see `write_held`); what the
-- updates announce (see `announce`); the instant, and whether it may notify. A job that is delayed until there is a mark
-- goes on if it gets that without a token.
-- Returns two letters for each (the verdict and the state), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.update(
    queue_name text, ids text[], tokens text[], progresses text[], datas text[], lines text[], keep_lines integer[],
    alones boolean[], clear_stalls boolean[], flows text, marks text[], kinds text[], details text[], listed text[],
    positions text[], at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL, OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer;
    held text[];
    job ropeway.whole_job;
    amount integer;
    new_marks text;
    is_awaited boolean;
    accepted boolean[];
    promoted text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue_id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF tokens[n] IS NOT NULL AND (job.state <> 'active' OR job.token <> tokens[n]) THEN
            letters := letters || 'l' || ropeway.state_letter(job.state);
            CONTINUE;
        ELSIF tokens[n] IS NULL AND job.state IN ({{FINAL}}) THEN
            letters := letters || 'r' || ropeway.state_letter(job.state);
            CONTINUE;
        END IF;
        IF flows::json ->> (n - 1) IS NOT NULL AND NOT ropeway.give_children(job, flows::json -> (n - 1), instant) THEN
            letters := letters || 'r' || ropeway.state_letter(job.state);
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.state_letter(job.state);
        accepted[n] := true;
        IF lines[n] IS NOT NULL THEN
            INSERT INTO ropeway.log_line (seq, at, number, text)
            SELECT abs(job.ord), instant, job.logged + said.number, said.text
            FROM json_array_elements_text(lines[n]::json) WITH ORDINALITY AS said (text, number);
            GET DIAGNOSTICS amount = ROW_COUNT;
            job.logged := job.logged + amount;
            DELETE FROM ropeway.log_line AS l
            WHERE l.seq = abs(job.ord) AND l.number <= job.logged - keep_lines[n];
        END IF;
        job.progress := coalesce(progresses[n], job.progress);
        IF datas[n] IS NOT NULL THEN
            UPDATE ropeway.job AS j SET data = datas[n] WHERE j.queue = queue_id AND j.id = job.id;
        END IF;
        IF alones[n] IS NOT NULL THEN
            UPDATE ropeway.active AS a SET alone = alones[n] WHERE a.queue = queue_id AND a.id = job.id;
        END IF;
        IF clear_stalls[n] THEN
            UPDATE ropeway.active AS a SET stalled_count = 0 WHERE a.queue = queue_id AND a.id = job.id;
        END IF;
        is_awaited := false;
        IF marks[n] IS NOT NULL THEN
            new_marks := '[' || instant || ',' || marks[n] || ']';
            is_awaited := job.awaits IS NOT NULL AND tokens[n] IS NULL AND EXISTS (
                SELECT FROM ropeway.marks_in(new_marks) AS new WHERE new.name = job.awaits AND new.value IS NOT NULL
            );
            job.marks := concat_ws(',', job.marks, new_marks);
            IF octet_length(job.marks) > {{MARKS_IN_ROW}} THEN
                PERFORM ropeway.store_marks(queue_id, job.id, job.marks);
                job.marks := NULL;
            END IF;
        END IF;
        IF is_awaited THEN
            PERFORM ropeway.delete_state(job);
            PERFORM ropeway.insert_waiting(job);
            s := ropeway.count_move(s, 'delayed', 'waiting');
            promoted := promoted || ('["' || job.id || '",null]');
        ELSIF progresses[n] IS NULL AND lines[n] IS NULL AND marks[n] IS NULL THEN
            CONTINUE;
        ELSIF job.state = 'active' THEN
            UPDATE ropeway.active AS a SET progress = job.progress, logged = job.logged, marks = job.marks
            WHERE a.queue = queue_id AND a.id = job.id;
        ELSIF job.state = 'waiting' THEN
            UPDATE ropeway.waiting AS w SET progress = job.progress, logged = job.logged, marks = job.marks
            WHERE w.queue = queue_id AND w.priority = job.priority AND w.ord = job.ord;
        ELSE
            UPDATE ropeway.later AS l SET progress = job.progress, logged = job.logged, marks = job.marks
            WHERE l.queue = queue_id AND l.id = job.id;
        END IF;
    END LOOP;
    IF accepted IS NOT NULL THEN
        s := ropeway.announce(s, ids, kinds, details, listed, positions, accepted, instant);
    END IF;
    IF promoted IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{PROMOTE}}', instant, 'waiting', array_to_string(promoted, ',')), cardinality(promoted)
        );
    END IF;
    wakes := ropeway.write_step(s, queue_id, instant, false, may_wake);
    IF promoted IS NOT NULL THEN
        -- It was claimed before, as all that are in line behind it may be by now.
        wakes := array_remove(array_append(wakes, ropeway.wake(queue_id, 'jobs', may_wake, true)), NULL);
    END IF;
END
$$;
