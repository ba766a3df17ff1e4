-- Removes jobs.
-- Takes the queue, ids, whether to remove active ones too, the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state before), and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.remove(
    queue_name text, ids text[], forces boolean, at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue ropeway.queue;
    held text[];
    job ropeway.whole_job;
    removed text[] := '{}';
    states ropeway.state[];
    seqs bigint[];
    revoked text[];
    tokens text[];
    dropped record;
BEGIN
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.name = queue_name;
    held := ropeway.lock_jobs(queue.id, ids);
    letters := '';
    FOR n IN 1 .. cardinality(ids) LOOP
        IF ids[n] = ANY (removed) THEN
            letters := letters || 'm-';
            CONTINUE;
        END IF;
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue.id AND p.id = ids[n] AND p.id = ANY (held);
        IF NOT FOUND THEN
            letters := letters || 'm-';
            CONTINUE;
        ELSIF job.state = 'active' AND NOT forces THEN
            letters := letters || 'ra';
            CONTINUE;
        END IF;
        letters := letters || 'd' || ropeway.state_letter(job.state);
        IF job.state = 'active' THEN
            revoked := revoked || job.id;
            tokens := tokens || job.token;
        END IF;
        PERFORM ropeway.delete_state(job);
        s := ropeway.count_move(s, job.state, NULL);
        removed := removed || job.id;
        states := states || job.state;
        seqs := seqs || abs(job.ord);
    END LOOP;
    dropped := ropeway.drop_jobs(s, queue.id, removed, states, seqs, instant, true);
    s := dropped.s;
    IF dropped.news IS NOT NULL THEN
        s := ropeway.conclude(s, queue.id, dropped.news, instant, NULL, dropped.lowest);
    END IF;
    IF revoked IS NOT NULL THEN
        PERFORM ropeway.revoke_locks(queue.id, revoked, tokens, 'removed', instant);
    END IF;
    wakes := ropeway.write_step(s, queue.id, instant, revoked IS NOT NULL AND queue.max_active IS NOT NULL, may_wake);
END
$$;
