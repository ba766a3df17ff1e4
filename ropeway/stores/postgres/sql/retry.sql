-- Moves finished jobs to waiting. A parent that was not released is retried with the children that failed, at any depth.
-- Takes the queue, ids, whether to reset their counters, the marks that they get and lose (see `write_held`; null:
-- none), the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state before), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.retry(
    queue_name text, ids text[], resets boolean, marks text, at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    queue_id integer;
    held text[];
    job ropeway.whole_job;
    one record;
    has_locked_families boolean := false;
    -- The children that are retried with a job, and how many of them were read; what was moved, and the steps of its queues.
    again_queues integer[];
    again_ids text[];
    done integer;
    moved_queues integer[];
    moved_ids text[];
    moved_to ropeway.state[];
    queues integer[];
    steps ropeway.step[];
    place integer;
    alike record;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue_id, ids);
    queues := ARRAY[queue_id];
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state NOT IN ({{FINAL}}) THEN
            letters := letters || 'r' || ropeway.state_letter(job.state);
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.state_letter(job.state);
        IF marks IS NOT NULL THEN
            job.marks := concat_ws(',', job.marks, '[' || instant || ',' || marks || ']');
            IF octet_length(job.marks) > {{MARKS_IN_ROW}} THEN
                PERFORM ropeway.store_marks(queue_id, job.id, job.marks);
                job.marks := NULL;
            END IF;
        END IF;
        IF job.family IS NOT NULL AND NOT has_locked_families THEN
            -- All of them, in the order that all calls keep to.
            PERFORM FROM ropeway.family AS f
            WHERE f.id = ANY (ARRAY(SELECT j.family FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (held)))
            ORDER BY f.id DESC FOR UPDATE;
            has_locked_families := true;
        END IF;
        again_queues := '{}';
        again_ids := '{}';
        done := 0;
        LOOP
            -- A child of two parents may come twice.
            IF job.state IN ({{FINAL}}) THEN
                one := ropeway.retry_one(job, resets);
                again_queues := again_queues || one.child_queues;
                again_ids := again_ids || one.child_ids;
                place := coalesce(array_position(queues, job.queue), cardinality(queues) + 1);
                queues[place] := job.queue;
                steps[place] := ropeway.count_move(steps[place], job.state, one.entered);
                moved_queues := moved_queues || job.queue;
                moved_ids := moved_ids || job.id;
                moved_to := moved_to || one.entered;
            END IF;
            done := done + 1;
            EXIT WHEN done > cardinality(again_ids);
            SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = again_queues[done] AND p.id = again_ids[done];
        END LOOP;
    END LOOP;
    FOR alike IN
        SELECT
            moved.queue, moved.entered, count(*)::integer AS amount,
            string_agg('["' || moved.id || '",null]', ',' ORDER BY moved.n) AS listed
        FROM unnest(moved_queues, moved_ids, moved_to) WITH ORDINALITY AS moved (queue, id, entered, n)
        GROUP BY moved.queue, moved.entered
    LOOP
        place := array_position(queues, alike.queue);
        steps[place] := ropeway.add_entry(
            steps[place], ropeway.entry('{{RETRY_BY_HAND}}', instant, alike.entered::text, alike.listed), alike.amount
        );
    END LOOP;
    wakes := ropeway.write_step(steps[1], queue_id, instant, moved_ids IS NOT NULL, may_wake);
    FOR n IN 2 .. cardinality(queues) LOOP
        PERFORM ropeway.write_step(steps[n], queues[n], instant, true, true);
    END LOOP;
END
$$;
