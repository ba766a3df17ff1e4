-- Moves delayed jobs to waiting that are due, at most a batch.
-- Takes the step, the queue, the instant, and the least due_at to look at (null: any).
-- Returns the step, how many were promoted, and when the next one is due, or to be looked for again.
CREATE OR REPLACE FUNCTION ropeway.promote_due(
    INOUT s ropeway.step, queue_id integer, instant bigint, from_due bigint, OUT promoted integer, OUT next_due bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    ctids tid[];
    jobs text;
BEGIN
    promoted := 0;
    SELECT later.due_at INTO next_due FROM ropeway.later
    WHERE later.queue = queue_id AND later.due_at >= coalesce(from_due, 0)
    ORDER BY later.due_at LIMIT 1;
    IF next_due IS NULL OR next_due > instant THEN
        RETURN;
    END IF;
    -- In a separate statement: for a job that was changed meanwhile it returns the new ctid, which its own snapshot does
    -- not contain.
    ctids := ARRAY(
        SELECT due.ctid FROM ropeway.later AS due
        WHERE due.queue = queue_id AND due.due_at >= coalesce(from_due, 0) AND due.due_at <= instant
        ORDER BY due.due_at, due.ord
        LIMIT {{BATCH}}
        FOR UPDATE SKIP LOCKED
    );
    WITH gone AS (
        DELETE FROM ropeway.later WHERE later.ctid = ANY (ctids) RETURNING later.*
    ), lined AS (
        INSERT INTO ropeway.waiting (ord, queue, priority, {{CARRIED}}, reason, start_by)
        SELECT
            gone.ord, gone.queue, gone.priority, {{CARRIED_OF_GONE}}, gone.reason, gone.start_by
        FROM gone
    )
    SELECT count(*), string_agg('["' || gone.id || '",null]', ',' ORDER BY gone.due_at, gone.ord)
    INTO promoted, jobs
    FROM gone;
    IF promoted > 0 THEN
        s := ropeway.add_entry(s, ropeway.entry('{{PROMOTE}}', instant, 'waiting', jobs), promoted);
        s := ropeway.count_move(s, 'delayed', 'waiting', promoted);
    END IF;
    SELECT later.due_at INTO next_due FROM ropeway.later
    WHERE later.queue = queue_id AND later.due_at >= coalesce(from_due, 0)
    ORDER BY later.due_at LIMIT 1;
    IF next_due <= instant AND promoted < {{BATCH}} THEN
        -- Others have locked it. Their commit wakes those who wait, if that makes a difference.
        next_due := instant + {{LOOK_AGAIN}};
    END IF;
END
$$;
