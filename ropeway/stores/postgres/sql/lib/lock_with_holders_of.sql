-- Locks the jobs of a call together with those that hold the dedupe keys of what its outcomes add (see `lock_with_holders`).
-- Takes the queue, the ids of the call's jobs, and the jobs that it adds (see `add_of_outcomes`).
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.lock_with_holders_of(queue_id integer, ids text[], adds text) RETURNS void
LANGUAGE sql AS $$
    SELECT ropeway.lock_with_holders(queue_id, ids, array_agg(job.queue), array_agg(job.key), array_agg(job.mode))
    FROM json_to_recordset(adds::json) AS job (queue text, key text, mode text)
$$;
