-- Removes jobs: the only function that does. What has to happen when a job is removed belongs here.
-- Takes the step, the queue, the ids of jobs whose state's row is deleted and uncounted already, the state of each, the
-- sequence numbers of those that may have failures or log lines, and the instant.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.drop_jobs(
    INOUT s ropeway.step, queue_id integer, ids text[], states ropeway.state[], seqs bigint[], instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    amount CONSTANT integer := cardinality(ids);
    listed text;
BEGIN
    IF ids IS NULL OR amount = 0 THEN
        RETURN;
    END IF;
    WITH gone AS (
        DELETE FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (ids)
    )
    SELECT string_agg('["' || job.id || '",{"prev":"' || job.state || '"}]', ',')
    INTO listed
    FROM unnest(ids, states) AS job (id, state);
    IF cardinality(seqs) > 0 THEN
        DELETE FROM ropeway.failure AS f WHERE f.seq = ANY (seqs);
        DELETE FROM ropeway.log_line AS l WHERE l.seq = ANY (seqs);
    END IF;
    s.entries := concat_ws(',', s.entries, ropeway.entry('{{REMOVE}}', instant, NULL, listed));
    s.events := coalesce(s.events, 0) + amount;
    s.metric_removed := coalesce(s.metric_removed, 0) + amount;
END
$$;
