-- Selects the most urgent waiting jobs of some names, and locks them, skipping those that are locked.
-- Takes the queue, how many at most, the names (null: any), the paused names, and the priority and ord to start behind.
-- Returns the ctids of their rows.
CREATE OR REPLACE FUNCTION ropeway.select_by_name(
    queue_id integer, most integer, names text[], paused text[], from_priority integer, from_ord bigint
) RETURNS tid[]
LANGUAGE plpgsql AS $$
DECLARE
    -- More than are wanted, because others may lock some of them.
    margin CONSTANT integer := 50;
    wanted text[] := names;
    ctids tid[] := '{}';
    candidates integer;
    found_now tid[];
BEGIN
    IF wanted IS NULL THEN
        -- Every name that has waiting jobs: a step in the index for each, however many jobs it has.
        WITH RECURSIVE known (name) AS (
            (SELECT w.name FROM ropeway.waiting AS w WHERE w.queue = queue_id ORDER BY w.name LIMIT 1)
            UNION ALL
            SELECT (
                SELECT w.name FROM ropeway.waiting AS w
                WHERE w.queue = queue_id AND w.name > known.name ORDER BY w.name LIMIT 1
            )
            FROM known
            WHERE known.name IS NOT NULL
        )
        SELECT array_agg(known.name) INTO wanted FROM known WHERE known.name IS NOT NULL;
    END IF;
    wanted := ARRAY(SELECT DISTINCT given.name FROM unnest(wanted) AS given (name) WHERE given.name <> ALL (paused));
    FOR round IN 1 .. 10 LOOP
        WITH urgent AS MATERIALIZED (
            SELECT of_name.priority, of_name.ord
            FROM unnest(wanted) AS given (name)
            CROSS JOIN LATERAL (
                SELECT w.priority, w.ord FROM ropeway.waiting AS w
                WHERE w.queue = queue_id AND w.name = given.name AND w.ctid <> ALL (ctids)
                    AND (w.priority, w.ord) > (from_priority, from_ord)
                ORDER BY w.priority, w.ord
                LIMIT most + margin
            ) AS of_name
            ORDER BY of_name.priority, of_name.ord
            LIMIT most + margin
        )
        SELECT
            (SELECT count(*) FROM urgent),
            ARRAY(
                SELECT free.row_ctid FROM urgent
                CROSS JOIN LATERAL (
                    SELECT w.ctid AS row_ctid FROM ropeway.waiting AS w
                    WHERE w.queue = queue_id AND w.priority = urgent.priority AND w.ord = urgent.ord
                    FOR UPDATE SKIP LOCKED
                ) AS free
                LIMIT most - cardinality(ctids)
            )
        INTO candidates, found_now;
        ctids := ctids || found_now;
        -- Fewer candidates than that were all there is.
        EXIT WHEN cardinality(ctids) >= most OR candidates < most + margin;
    END LOOP;
    RETURN ctids;
END
$$;
