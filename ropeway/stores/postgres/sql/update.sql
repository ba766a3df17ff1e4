-- Changes the progress, data, log or marks of jobs, and whether they run alone.
-- Takes the queue, and for each update the job's id, token (null: any job that is not final), progress, data, log lines
-- (json, a list; null: none), how many lines to keep, and whether it runs alone (null: unchanged); the children that jobs
-- get (see `give_children`; null: none); the marks to write and their values (see `write_marks`; null: none); the instant, and
-- whether it may notify. A job that is delayed until there is a mark goes on if it gets that without a token.
-- Returns two letters for each (the verdict and the state), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.update(
    queue_name text, ids text[], tokens text[], progresses text[], datas text[], lines text[], keep_lines integer[],
    alones boolean[], flows text DEFAULT NULL, markings text DEFAULT NULL, mark_values text[] DEFAULT NULL,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL, OUT letters text, OUT wakes text[]
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
    progressed text[];
    changed text[];
    mark_of integer[];
    mark_names text[];
    numbers bigint[];
    new_ids text[];
    promoted text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue_id, ids);
    IF markings IS NOT NULL THEN
        mark_of := ropeway.texts_of_json(markings::json -> 'of');
        mark_names := ropeway.texts_of_json(markings::json -> 'names');
    END IF;
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
        IF lines[n] IS NOT NULL THEN
            INSERT INTO ropeway.log_line (seq, at, number, text)
            SELECT abs(job.ord), instant, job.logged + said.number, said.text
            FROM json_array_elements_text(lines[n]::json) WITH ORDINALITY AS said (text, number);
            GET DIAGNOSTICS amount = ROW_COUNT;
            job.logged := job.logged + amount;
            DELETE FROM ropeway.log_line AS l
            WHERE l.seq = abs(job.ord) AND l.number <= job.logged - keep_lines[n];
        END IF;
        IF progresses[n] IS NOT NULL THEN
            job.progress := progresses[n];
            progressed := progressed || ('["' || job.id || '",{"progress":' || job.progress || '}]');
        END IF;
        IF datas[n] IS NOT NULL THEN
            UPDATE ropeway.job AS j SET data = datas[n] WHERE j.queue = queue_id AND j.id = job.id;
            changed := changed || ('["' || job.id || '",{"data":true}]');
        END IF;
        IF alones[n] IS NOT NULL THEN
            UPDATE ropeway.active AS a SET alone = alones[n] WHERE a.queue = queue_id AND a.id = job.id;
        END IF;
        IF markings IS NOT NULL THEN
            numbers[n] := coalesce(job.marks, abs(job.ord));
            IF job.marks IS NULL AND n = ANY (mark_of) THEN
                new_ids := new_ids || job.id;
            END IF;
        END IF;
        IF job.awaits IS NOT NULL AND tokens[n] IS NULL AND EXISTS (
            SELECT FROM unnest(mark_of, mark_names, mark_values) AS one (of, name, value)
            WHERE one.of = n AND one.name = job.awaits AND one.value IS NOT NULL
        ) THEN
            PERFORM ropeway.delete_state(job);
            PERFORM ropeway.insert_waiting(job);
            s := ropeway.count_move(s, 'delayed', 'waiting');
            promoted := promoted || ('["' || job.id || '",null]');
        ELSIF progresses[n] IS NULL AND lines[n] IS NULL THEN
            CONTINUE;
        ELSIF job.state = 'active' THEN
            UPDATE ropeway.active AS a SET progress = job.progress, logged = job.logged
            WHERE a.queue = queue_id AND a.id = job.id;
        ELSIF job.state = 'waiting' THEN
            UPDATE ropeway.waiting AS w SET progress = job.progress, logged = job.logged
            WHERE w.queue = queue_id AND w.priority = job.priority AND w.ord = job.ord;
        ELSE
            UPDATE ropeway.later AS l SET progress = job.progress, logged = job.logged
            WHERE l.queue = queue_id AND l.id = job.id;
        END IF;
    END LOOP;
    IF progressed IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{PROGRESS}}', instant, NULL, array_to_string(progressed, ',')), cardinality(progressed)
        );
    END IF;
    IF changed IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{CHANGED}}', instant, NULL, array_to_string(changed, ',')), cardinality(changed)
        );
    END IF;
    IF numbers IS NOT NULL THEN
        s := ropeway.write_marks(s, queue_id, ids, numbers, new_ids, markings::json, mark_values, instant);
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
