-- Removes jobs that are neither active nor final.
-- Takes the step, the queue, the ids, the instant, and whether the call may wait for families (see `drop_jobs`).
-- Returns what `drop_jobs` returns.
CREATE OR REPLACE FUNCTION ropeway.remove_unstarted(
    INOUT s ropeway.step, queue_id integer, ids text[], instant bigint, may_wait boolean, OUT news ropeway.news[],
    OUT lowest bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    job ropeway.whole_job;
    removed text[] := '{}';
    states ropeway.state[];
    seqs bigint[];
    dropped record;
    job_id text;
BEGIN
    FOREACH job_id IN ARRAY ropeway.lock_jobs(queue_id, ids) LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = job_id;
        CONTINUE WHEN job.state IN ('active', {{FINAL}});
        PERFORM ropeway.delete_state(job);
        s := ropeway.count_move(s, job.state, NULL);
        removed := removed || job.id;
        states := states || job.state;
        seqs := seqs || abs(job.ord);
    END LOOP;
    dropped := ropeway.drop_jobs(s, queue_id, removed, states, seqs, instant, may_wait);
    s := dropped.s;
    news := dropped.news;
    lowest := dropped.lowest;
END
$$;
