-- Inserts the state's row of a new job.
-- Takes its queue, sequence number, lifo, priority, id, name, delay and due_at, whether it has children, its extras, and the
-- instant.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.place_job(
    queue_id integer, seq bigint, lifo boolean, priority integer, job_id text, job_name text, delay bigint, due_at bigint,
    is_parent boolean, extras text, instant bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    ord CONSTANT bigint := CASE WHEN lifo THEN -seq ELSE seq END;
    due CONSTANT bigint := CASE
        WHEN is_parent THEN NULL
        WHEN delay > 0 THEN least(instant + delay, {{LAST_INSTANT}})
        WHEN place_job.due_at > instant THEN place_job.due_at
    END;
BEGIN
    IF is_parent OR due IS NOT NULL THEN
        INSERT INTO ropeway.later (ord, due_at, queue, priority, id, name, has_ties, start_by)
        VALUES (
            ord, due, queue_id, coalesce(place_job.priority, 0), job_id, job_name, true, ropeway.start_by(extras, instant)
        );
    ELSE
        INSERT INTO ropeway.waiting (ord, queue, priority, id, name, has_ties, start_by)
        VALUES (ord, queue_id, coalesce(place_job.priority, 0), job_id, job_name, true, ropeway.start_by(extras, instant));
    END IF;
END
$$;
