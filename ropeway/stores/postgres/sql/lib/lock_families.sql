-- Locks the families of active jobs and of their parents, in the order that all calls keep to.
-- Takes the queue and ids. The jobs are locked first.
-- Returns the least of the families.
CREATE OR REPLACE FUNCTION ropeway.lock_families(queue_id integer, ids text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    wanted bigint[];
BEGIN
    PERFORM FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = ANY (ids) ORDER BY a.id FOR UPDATE;
    wanted := ARRAY(
        SELECT unnest(j.families || j.family) FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (ids)
    );
    PERFORM FROM ropeway.family AS f WHERE f.id = ANY (wanted) ORDER BY f.id DESC FOR UPDATE;
    RETURN (SELECT min(each.family) FROM unnest(wanted) AS each (family));
END
$$;
