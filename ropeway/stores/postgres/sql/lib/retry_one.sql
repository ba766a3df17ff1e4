-- Makes a finished job wait again, and for its children if it was not released (see `await_again`).
-- Takes the job, which must be locked with its family, and whether to reset its counters.
-- Returns the state it enters, and the children that have to be retried with it, which are locked with their families.
CREATE OR REPLACE FUNCTION ropeway.retry_one(
    job ropeway.whole_job, resets boolean, OUT entered ropeway.state, OUT child_queues integer[], OUT child_ids text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    waits boolean := false;
    again record;
BEGIN
    IF job.family IS NOT NULL THEN
        again := ropeway.await_again(job.family);
        waits := again.waits;
        child_queues := again.child_queues;
        child_ids := again.child_ids;
    END IF;
    PERFORM ropeway.delete_state(job);
    job.token := NULL;
    job.reason := NULL;
    job.progress := NULL;
    IF resets THEN
        job.attempts_made := 0;
        job.attempts_started := 0;
        job.stalled_count := 0;
    END IF;
    IF waits THEN
        entered := 'waiting-children';
        INSERT INTO ropeway.later (ord, queue, priority, {{CARRIED}}, reason)
        VALUES (job.ord, job.queue, job.priority, {{CARRIED_OF_JOB}}, job.reason);
    ELSE
        entered := 'waiting';
        PERFORM ropeway.insert_waiting(job);
    END IF;
END
$$;
