-- Folds the steps of a queue, unless another call is folding them.
-- Takes the queue.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.try_fold(queue_name text) RETURNS void
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}}
AS $$
DECLARE
    queue_id integer;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF pg_try_advisory_xact_lock(hashtext('ropeway.fold'), queue_id) THEN
        PERFORM ropeway.fold(queue_id);
    END IF;
END
$$;
