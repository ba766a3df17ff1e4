-- Claims waiting jobs for one worker.
-- Takes the queue, the request and the start of the scan (see `claim_jobs`), the instant, and whether it may notify.
-- Returns the instant, the columns of `claim_jobs`, and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.claim(
    queue_name text, token text, worker text, most integer, lock bigint, names text[], repeats boolean, isolates boolean,
    from_priority integer, from_ord bigint, from_due bigint,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT instant bigint, OUT again_at bigint, OUT ids text[], OUT job_names text[], OUT datas text[],
    OUT options text[], OUT priorities integer[], OUT ords bigint[], OUT created bigint[], OUT pasts text[],
    OUT held bigint[], OUT passed bigint, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    queue ropeway.queue;
    taken record;
BEGIN
    -- Not worth waiting for the disk: if a crash of the server undoes the claim, the job is waiting again, and the token of
    -- the worker that ran it is invalid.
    PERFORM set_config('synchronous_commit', 'off', true);
    instant := ropeway.clock(at);
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    taken := ropeway.claim_jobs(
        s, queue, instant, token, worker, most, lock, names, repeats, isolates, from_priority, from_ord, from_due
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
    wakes := ropeway.write_step(s, queue.id, instant, coalesce(s.delayed, 0) < 0 AND coalesce(s.waiting, 0) > 0, may_wake);
END
$$;
