-- Changes the priority, order, due time or data of jobs. An edit that the job's state does not allow changes nothing.
-- Takes the queue, and for each edit the job's id, priority, lifo, delay, due_at and data, where null keeps the old
-- value; the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.change(
    queue_name text, ids text[], priorities integer[], lifos boolean[], delays bigint[], dues bigint[], datas text[],
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
    old ropeway.whole_job;
    changed text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue_id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state IN ({{FINAL}}) OR (
            (priorities[n] IS NOT NULL OR lifos[n] IS NOT NULL)
            AND job.state NOT IN ('waiting', 'delayed', 'waiting-children')
        ) OR (
            (delays[n] IS NOT NULL OR dues[n] IS NOT NULL) AND job.state <> 'delayed'
        ) THEN
            letters := letters || 'r' || ropeway.state_letter(job.state);
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.state_letter(job.state);
        CONTINUE WHEN num_nonnulls(priorities[n], lifos[n], delays[n], dues[n], datas[n]) = 0;
        old := job;
        job.priority := coalesce(priorities[n], job.priority);
        job.ord := CASE WHEN lifos[n] THEN -abs(job.ord) WHEN NOT lifos[n] THEN abs(job.ord) ELSE job.ord END;
        IF job.state = 'delayed' THEN
            job.due_at := least(coalesce(dues[n], instant + delays[n], job.due_at), {{LAST_INSTANT}});
        END IF;
        IF job.state = 'waiting' THEN
            UPDATE ropeway.waiting AS w SET priority = job.priority, ord = job.ord
            WHERE w.queue = queue_id AND w.priority = old.priority AND w.ord = old.ord
                AND (w.priority, w.ord) IS DISTINCT FROM (job.priority, job.ord);
        ELSIF job.state IN ('delayed', 'waiting-children') THEN
            UPDATE ropeway.later AS l SET priority = job.priority, ord = job.ord, due_at = job.due_at
            WHERE l.queue = queue_id AND l.id = job.id;
        END IF;
        UPDATE ropeway.job AS j
        SET priority = job.priority, ord = job.ord, data = coalesce(datas[n], j.data)
        WHERE j.queue = queue_id AND j.id = job.id;
        changed := changed || ('["' || job.id || '",{' || concat_ws(
            ',',
            '"priority":' || priorities[n],
            '"lifo":' || lifos[n],
            CASE WHEN coalesce(delays[n], dues[n]) IS NOT NULL THEN '"due_at":' || job.due_at END,
            CASE WHEN datas[n] IS NOT NULL THEN '"data":true' END
        ) || '}]');
    END LOOP;
    IF changed IS NOT NULL THEN
        s := ropeway.add_entry(
            s, ropeway.entry('{{CHANGED}}', instant, NULL, array_to_string(changed, ',')), cardinality(changed)
        );
    END IF;
    wakes := ropeway.write_step(s, queue_id, instant, changed IS NOT NULL, may_wake);
END
$$;
