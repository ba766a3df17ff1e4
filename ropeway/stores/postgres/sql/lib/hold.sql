-- Locks jobs wherever they stand, until the call ends.
-- Takes the queue and ids.
-- Returns nothing; whoever asks `place` next sees them as they stay.
CREATE OR REPLACE FUNCTION ropeway.hold(queue_id integer, ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held bigint;
    amount bigint;
BEGIN
    LOOP
        PERFORM FROM ropeway.active AS a
        WHERE a.queue = queue_id AND a.id = ANY (ids) ORDER BY a.id FOR UPDATE;
        GET DIAGNOSTICS held = ROW_COUNT;
        PERFORM FROM (
            SELECT j.priority, j.ord FROM ropeway.job AS j
            WHERE j.queue = queue_id AND j.id = ANY (ids) ORDER BY j.id
        ) AS job
        CROSS JOIN LATERAL (
            SELECT FROM ropeway.waiting AS w
            WHERE w.queue = queue_id AND w.priority = job.priority AND w.ord = job.ord
            FOR UPDATE
        ) AS held;
        GET DIAGNOSTICS amount = ROW_COUNT;
        held := held + amount;
        PERFORM FROM ropeway.later AS l
        WHERE l.queue = queue_id AND l.id = ANY (ids) ORDER BY l.id FOR UPDATE;
        GET DIAGNOSTICS amount = ROW_COUNT;
        held := held + amount;
        PERFORM FROM ropeway.finished AS f
        WHERE f.queue = queue_id AND f.id = ANY (ids) ORDER BY f.id FOR UPDATE;
        GET DIAGNOSTICS amount = ROW_COUNT;
        held := held + amount;
        SELECT count(*) INTO amount FROM ropeway.job WHERE job.queue = queue_id AND job.id = ANY (ids);
        -- One that was moved by others while we looked stands where we did not see it.
        EXIT WHEN held >= amount;
    END LOOP;
END
$$;
