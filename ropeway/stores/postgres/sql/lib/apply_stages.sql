-- Applies the retention of a whole queue: marks finished jobs as stale, and deletes those that are old enough.
-- Takes the step, the queue, and the instant.
-- Returns the step, how many jobs became stale and were deleted, whether there may be more, and when the next one does or is
-- (null: none). One call at a time does that; another one that comes meanwhile does nothing.
CREATE OR REPLACE FUNCTION ropeway.apply_stages(
    INOUT s ropeway.step, queue_id integer, instant bigint, OUT stale integer, OUT deleted integer, OUT more boolean,
    OUT next_at bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    queue ropeway.queue;
    stale_batch integer;
    delete_batch integer;
    marked_until bigint;
    delete_until bigint;
    ids text[];
    ctids tid[];
    listed text;
    stale_callbacks json;
    deleted_callbacks json;
BEGIN
    stale := 0;
    deleted := 0;
    more := false;
    IF NOT pg_try_advisory_xact_lock(hashtext('ropeway.stages'), queue_id) THEN
        RETURN;
    END IF;
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.id = queue_id;
    stale_batch := CASE WHEN '{{STALE}}' = ANY (queue.callbacks) THEN {{CALLBACK_BATCH}} ELSE {{BATCH}} END;
    delete_batch := CASE WHEN '{{DELETED}}' = ANY (queue.callbacks) THEN {{CALLBACK_BATCH}} ELSE {{BATCH}} END;
    -- Those that ended in the same millisecond as the last one of the batch become stale with it.
    marked_until := (
        SELECT max(due.finished_at) FROM (
            SELECT ended.finished_at
            FROM ropeway.ended_between(queue_id, queue.stale_until, instant - queue.stale_after, stale_batch) AS ended
            ORDER BY 1 LIMIT stale_batch
        ) AS due
    );
    IF marked_until IS NOT NULL THEN
        SELECT
            array_agg(ended.id ORDER BY ended.state, ended.finished_at, ended.seq),
            string_agg('["' || ended.id || '",null]', ',' ORDER BY ended.state, ended.finished_at, ended.seq)
        INTO ids, listed
        FROM ropeway.ended_between(queue_id, queue.stale_until, marked_until, NULL) AS ended;
        stale := cardinality(ids);
        s := ropeway.add_entry(s, ropeway.entry('{{STALE}}', instant, NULL, listed), stale);
        IF '{{STALE}}' = ANY (queue.callbacks) THEN
            stale_callbacks := ropeway.callback_jobs(queue_id, queue.name, '{{STALE}}', ids);
        END IF;
        queue.stale_until := marked_until;
    END IF;
    -- None goes before it is stale.
    delete_until := CASE
        WHEN queue.stale_after IS NULL THEN instant - queue.delete_after
        ELSE least(instant - queue.delete_after, queue.stale_until)
    END;
    IF queue.delete_after IS NOT NULL THEN
        SELECT
            array_agg(ended.id), array_agg(ended.row_ctid), string_agg('["' || ended.id || '",null]', ',')
        INTO ids, ctids, listed
        FROM (
            SELECT old.id, mine.row_ctid
            FROM (
                SELECT found.* FROM ropeway.ended_between(queue_id, -1, delete_until, delete_batch) AS found
                ORDER BY found.state, found.finished_at, found.seq LIMIT delete_batch
            ) AS old
            CROSS JOIN LATERAL (
                SELECT f.ctid AS row_ctid FROM ropeway.finished AS f
                WHERE f.queue = queue_id AND f.id = old.id AND f.finished_at = old.finished_at
                FOR UPDATE SKIP LOCKED
            ) AS mine
        ) AS ended;
        IF ids IS NOT NULL THEN
            deleted := cardinality(ids);
            s := ropeway.add_entry(s, ropeway.entry('{{DELETED}}', instant, NULL, listed), deleted);
            IF '{{DELETED}}' = ANY (queue.callbacks) THEN
                deleted_callbacks := ropeway.callback_jobs(queue_id, queue.name, '{{DELETED}}', ids);
            END IF;
            s := ropeway.drop_final(s, queue_id, ctids, instant);
        END IF;
    END IF;
    IF marked_until IS NOT NULL THEN
        UPDATE ropeway.queue AS q SET stale_until = marked_until WHERE q.id = queue_id;
    END IF;
    IF stale_callbacks IS NOT NULL THEN
        PERFORM ropeway.add_listed(stale_callbacks, instant, true);
    END IF;
    IF deleted_callbacks IS NOT NULL THEN
        PERFORM ropeway.add_listed(deleted_callbacks, instant, true);
    END IF;
    more := stale >= stale_batch OR deleted = delete_batch;
    next_at := least(
        queue.stale_after
        + (SELECT min(ended.finished_at) FROM ropeway.ended_between(queue_id, queue.stale_until, {{LAST_INSTANT}}, 1) AS ended),
        queue.delete_after
        + (SELECT min(ended.finished_at) FROM ropeway.ended_between(queue_id, -1, {{LAST_INSTANT}}, 1) AS ended)
    );
END
$$;
