-- Folds the steps of a queue: numbers them in the event stream, and adds them up in the counters.
--
--   calls, side by side                        one fold at a time (advisory lock)
--
--   INSERT step 7: -1 waiting, +1 active  ---+    id   number   events            tally of the queue
--   INSERT step 8: +2 waiting             ---+->   7     41     1 (claim)         waiting    +1
--   INSERT step 9: -1 active, +1 done     ---+     8     45     4 (two adds)      active     +0
--   INSERT step 10: not committed yet              9     46     1 (complete)      completed  +1, events = 46
--
-- If every call updated the counters and numbered its events, all calls on a queue would wait for each other's commit. So
-- a call only inserts a step: its entries, and what it adds to counters and metrics. A fold adds up the committed steps
-- that have no number yet, in the order of their ids. A call takes its id after it has seen what it builds on, so that
-- order is one of cause and effect. A step that commits late, such as 10, gets a number of a later fold, behind all that
-- readers have seen: no reader misses it, and an open transaction blocks no other call.
--
-- Readers fold before they read events. Counts are the tally plus the steps that are not folded yet. A fold replaces the
-- tally's row instead of updating it, so that the newest is found at once however many dead ones an open transaction
-- keeps. The step after which nothing is waiting or active is followed by a step with the event `drained`.
--
-- Takes the queue, and how many steps at most.
-- Returns how many there were.
CREATE OR REPLACE FUNCTION ropeway.fold(queue_id integer, most integer DEFAULT {{FOLD_BATCH}}) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    base ropeway.tally;
    folded integer;
BEGIN
    -- Held until the commit, so that the next fold sees what this one numbered.
    PERFORM pg_advisory_xact_lock(hashtext('ropeway.fold'), queue_id);
    IF NOT EXISTS (SELECT FROM ropeway.step WHERE step.queue = queue_id AND step.number IS NULL) THEN
        RETURN 0;
    END IF;
    SELECT t.* INTO base FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
    IF NOT FOUND THEN
        INSERT INTO ropeway.tally (queue, fold) VALUES (queue_id, 0) RETURNING tally.* INTO base;
    END IF;
    WITH next AS MATERIALIZED (
        SELECT
            step.ctid AS row_ctid, step.*, coalesce(step.waiting, 0) + coalesce(step.active, 0) AS busy,
            base.waiting + base.active
                + sum(coalesce(step.waiting, 0) + coalesce(step.active, 0)) OVER (ORDER BY step.id) AS left_busy
        FROM ropeway.step
        WHERE step.queue = queue_id AND step.number IS NULL
        ORDER BY step.id
        LIMIT most
    ), numbered AS MATERIALIZED (
        -- Obliterating a queue drains nothing: its steps have no events.
        SELECT
            next.*, next.left_busy = 0 AND next.busy < 0 AND next.events > 0 AS drains,
            base.events + sum(
                next.events + CASE WHEN next.left_busy = 0 AND next.busy < 0 AND next.events > 0 THEN 1 ELSE 0 END
            ) OVER (ORDER BY next.id) AS last_number
        FROM next
    ), counted AS (
        UPDATE ropeway.step SET number = numbered.last_number - CASE WHEN numbered.drains THEN 1 ELSE 0 END
        FROM numbered WHERE step.ctid = numbered.row_ctid
    ), drained AS (
        INSERT INTO ropeway.step (at, number, queue, events, entries)
        SELECT numbered.at, numbered.last_number, queue_id, 1, ropeway.entry('{{DRAINED}}', numbered.at, NULL, NULL)
        FROM numbered WHERE numbered.drains
    ), measured AS (
        INSERT INTO ropeway.metric AS m (queue, minute, added, completed, failed, retried, stalled, cancelled, removed)
        SELECT
            queue_id, numbered.at - numbered.at % {{MINUTE}},
            coalesce(sum(numbered.metric_added), 0), coalesce(sum(numbered.metric_completed), 0),
            coalesce(sum(numbered.metric_failed), 0), coalesce(sum(numbered.metric_retried), 0),
            coalesce(sum(numbered.metric_stalled), 0), coalesce(sum(numbered.metric_cancelled), 0),
            coalesce(sum(numbered.metric_removed), 0)
        FROM numbered
        WHERE coalesce(
            numbered.metric_added, numbered.metric_completed, numbered.metric_failed, numbered.metric_retried,
            numbered.metric_stalled, numbered.metric_cancelled, numbered.metric_removed
        ) IS NOT NULL
        GROUP BY numbered.at - numbered.at % {{MINUTE}}
        ON CONFLICT (queue, minute) DO UPDATE SET
            added = m.added + excluded.added, completed = m.completed + excluded.completed,
            failed = m.failed + excluded.failed, retried = m.retried + excluded.retried,
            stalled = m.stalled + excluded.stalled, cancelled = m.cancelled + excluded.cancelled,
            removed = m.removed + excluded.removed
    ), tallied AS (
        INSERT INTO ropeway.tally (
            fold, waiting, waiting_children, delayed, active, completed, failed, cancelled, events, events_from, queue
        )
        SELECT
            base.fold + 1,
            base.waiting + coalesce(sum(numbered.waiting), 0),
            base.waiting_children + coalesce(sum(numbered.waiting_children), 0),
            base.delayed + coalesce(sum(numbered.delayed), 0), base.active + coalesce(sum(numbered.active), 0),
            base.completed + coalesce(sum(numbered.completed), 0), base.failed + coalesce(sum(numbered.failed), 0),
            base.cancelled + coalesce(sum(numbered.cancelled), 0), max(numbered.last_number), base.events_from,
            queue_id
        FROM numbered
    )
    SELECT count(*) INTO folded FROM numbered;
    DELETE FROM ropeway.tally AS t WHERE t.queue = queue_id AND t.fold = base.fold;
    RETURN folded;
END
$$;
