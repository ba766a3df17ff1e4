-- Locks the jobs of a call together with those that hold the dedupe keys of what it adds, and those that wait for these, in the
-- order that all calls keep to. Only modes whose effect depends on the holder's state need this.
-- Takes the queue and the ids of the call's jobs, and the queues' names, keys and modes of the jobs that it adds.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.lock_with_holders(
    queue_id integer, ids text[], queues text[], keys text[], modes text[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    alike record;
BEGIN
    FOR alike IN
        WITH added AS (
            SELECT q.id AS queue, given.key FROM unnest(queues, keys, modes) AS given (queue, key, mode)
            JOIN ropeway.queue AS q ON q.name = given.queue
            WHERE given.mode IN ({{LOCKING_MODES}})
        ), wanted AS (
            SELECT queue_id AS queue, given.id FROM unnest(ids) AS given (id)
            UNION
            SELECT added.queue, one.id FROM added
            JOIN ropeway.held_key AS k ON k.queue = added.queue AND k.key = added.key
            CROSS JOIN LATERAL unnest(ARRAY[k.holder, k.next]) AS one (id)
            WHERE one.id IS NOT NULL
        )
        SELECT wanted.queue, array_agg(wanted.id) AS ids FROM wanted GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM ropeway.lock_jobs(alike.queue, alike.ids);
    END LOOP;
END
$$;
