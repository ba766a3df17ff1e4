-- Deletes the state's rows of jobs of any state that is not final, to remove them. Does not wait for other calls.
-- Takes the queue, the ids, and the instant.
-- Returns ids, states and sequence numbers, and the locks that are revoked by that.
CREATE OR REPLACE FUNCTION ropeway.detach_jobs(
    queue_id integer, INOUT ids text[], instant bigint, OUT states ropeway.state[], OUT seqs bigint[],
    OUT revoked ropeway.revoked[]
)
LANGUAGE plpgsql AS $$
DECLARE
    wanted CONSTANT text[] := ids;
BEGIN
    PERFORM FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = ANY (wanted) FOR UPDATE NOWAIT;
    PERFORM FROM ropeway.job AS j
    JOIN ropeway.waiting AS w ON w.queue = j.queue AND w.priority = j.priority AND w.ord = j.ord
    WHERE j.queue = queue_id AND j.id = ANY (wanted) FOR UPDATE OF w NOWAIT;
    PERFORM FROM ropeway.later AS l WHERE l.queue = queue_id AND l.id = ANY (wanted) FOR UPDATE NOWAIT;
    WITH active AS (
        DELETE FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = ANY (wanted)
        RETURNING a.id, 'active'::ropeway.state AS state, a.ord, a.token
    ), waiting AS (
        DELETE FROM ropeway.waiting AS w USING ropeway.job AS j
        WHERE j.queue = queue_id AND j.id = ANY (wanted)
            AND w.queue = j.queue AND w.priority = j.priority AND w.ord = j.ord
        RETURNING w.id, 'waiting'::ropeway.state, w.ord, NULL
    ), later AS (
        DELETE FROM ropeway.later AS l WHERE l.queue = queue_id AND l.id = ANY (wanted)
        RETURNING
            l.id, (CASE WHEN l.due_at IS NULL THEN 'waiting-children' ELSE 'delayed' END)::ropeway.state, l.ord, NULL
    )
    SELECT
        array_agg(gone.id), array_agg(gone.state), array_agg(abs(gone.ord)),
        array_agg(ROW(NULL, instant, queue_id, gone.id, gone.token, NULL)::ropeway.revoked) FILTER (WHERE gone.token IS NOT NULL)
    INTO ids, states, seqs, revoked
    FROM (SELECT * FROM active UNION ALL SELECT * FROM waiting UNION ALL SELECT * FROM later) AS gone;
    IF cardinality(ids) IS DISTINCT FROM cardinality(wanted) THEN
        RAISE serialization_failure USING MESSAGE = 'a job was moved meanwhile';
    END IF;
END
$$;
