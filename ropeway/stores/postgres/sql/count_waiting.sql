-- Counts the waiting jobs of some priorities, in the index that orders them: it takes as long as there are such jobs.
-- Takes the queue and the priorities.
-- Returns a number for each.
CREATE OR REPLACE FUNCTION ropeway.count_waiting(queue_name text, priorities bigint[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}}
AS $$
DECLARE
    queue_id integer;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    RETURN ARRAY(
        SELECT (SELECT count(*) FROM ropeway.waiting AS w WHERE w.queue = queue_id AND w.priority = given.priority)
        FROM unnest(priorities) WITH ORDINALITY AS given (priority, n)
        ORDER BY given.n
    );
END
$$;
