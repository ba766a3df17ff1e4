-- Pauses a queue and removes everything in it, a batch per call; the last call deletes its settings, schedules,
-- dedupe keys, counters, metrics and events.
-- Takes the queue, whether to remove active jobs too, and the instant.
-- Returns the ids that were removed, whether there is more, and how many active jobs prevented it.
CREATE OR REPLACE FUNCTION ropeway.obliterate(
    queue_name text, forces boolean, at bigint DEFAULT NULL, OUT ids text[], OUT more boolean, OUT active integer
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_KEY}}
AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    queue_id integer;
    held text[];
    job ropeway.whole_job;
    job_id text;
    gone text[] := '{}';
    s ropeway.step;
    base ropeway.tally;
    states ropeway.state[];
    seqs bigint[];
    revoked text[];
    tokens text[];
    dropped record;
BEGIN
    ids := '{}';
    more := false;
    active := 0;
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    ids := ARRAY(SELECT j.id FROM ropeway.job AS j WHERE j.queue = queue_id ORDER BY j.id LIMIT {{BATCH}});
    held := ropeway.lock_jobs(queue_id, ids);
    SELECT count(*) INTO active FROM ropeway.active AS a WHERE a.queue = queue_id;
    IF active > 0 AND NOT forces THEN
        UPDATE ropeway.queue AS q SET is_paused = true, is_configured = true WHERE q.id = queue_id;
        ids := '{}';
        RETURN;
    END IF;
    active := 0;
    FOREACH job_id IN ARRAY ids LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = job_id AND p.id = ANY (held);
        IF FOUND THEN
            IF job.state = 'active' THEN
                revoked := revoked || job.id;
                tokens := tokens || job.token;
            END IF;
            PERFORM ropeway.delete_state(job);
            s := ropeway.count_move(s, job.state, NULL);
            gone := gone || job.id;
            states := states || job.state;
            seqs := seqs || abs(job.ord);
        END IF;
    END LOOP;
    dropped := ropeway.drop_jobs(s, queue_id, gone, states, seqs, instant, true);
    s := dropped.s;
    IF dropped.news IS NOT NULL THEN
        s := ropeway.conclude(s, queue_id, dropped.news, instant, NULL, dropped.lowest);
    END IF;
    -- After the jobs and families: claims under a limit have locked some when they lock the queue.
    UPDATE ropeway.queue AS q SET is_paused = true, is_configured = true WHERE q.id = queue_id;
    IF cardinality(ids) > 0 THEN
        -- Without an event for each.
        INSERT INTO ropeway.step (
            at, queue, events, waiting, waiting_children, delayed, active, completed, failed, cancelled, entries
        )
        VALUES (
            instant, queue_id, 0, s.waiting, s.waiting_children, s.delayed, s.active, s.completed, s.failed,
            s.cancelled, ''
        );
    END IF;
    IF revoked IS NOT NULL THEN
        PERFORM ropeway.revoke_locks(queue_id, revoked, tokens, 'removed', instant);
    END IF;
    more := EXISTS (SELECT FROM ropeway.job AS j WHERE j.queue = queue_id);
    IF more THEN
        RETURN;
    END IF;
    -- Only the numbers of its events go on.
    LOOP
        EXIT WHEN ropeway.fold(queue_id) < {{FOLD_BATCH}};
    END LOOP;
    DELETE FROM ropeway.step WHERE step.queue = queue_id AND step.number IS NOT NULL;
    DELETE FROM ropeway.metric AS m WHERE m.queue = queue_id;
    DELETE FROM ropeway.schedule AS e WHERE e.queue = queue_id;
    DELETE FROM ropeway.held_key AS k WHERE k.queue = queue_id;
    UPDATE ropeway.tally AS t SET events_from = t.events WHERE t.queue = queue_id;
    UPDATE ropeway.queue AS q SET
        is_paused = false, is_configured = false, paused_names = '{}', has_deadlines = false, max_active = NULL,
        stale_after = NULL, delete_after = NULL, stale_until = 0, callbacks = NULL
    WHERE q.id = queue_id;
END
$$;
