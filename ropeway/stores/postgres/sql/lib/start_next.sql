-- Promotes a job that waits for the end of the job that holds its dedupe key.
-- Takes the queues of the call and their steps, its queue and id, and the instant. Another call that has locked it is not
-- waited for, because that may wait for the key.
-- Returns the queues and steps.
CREATE OR REPLACE FUNCTION ropeway.start_next(
    INOUT queues integer[], INOUT steps ropeway.step[], queue_id integer, job_id text, instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    place integer;
BEGIN
    PERFORM FROM ropeway.later AS l WHERE l.queue = queue_id AND l.id = job_id FOR UPDATE NOWAIT;
    WITH gone AS (
        DELETE FROM ropeway.later AS l WHERE l.queue = queue_id AND l.id = job_id AND l.due_at IS NOT NULL RETURNING l.*
    )
    INSERT INTO ropeway.waiting (ord, queue, priority, {{CARRIED}}, reason, start_by)
    SELECT gone.ord, gone.queue, gone.priority, {{CARRIED_OF_GONE}}, gone.reason, gone.start_by FROM gone;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    place := coalesce(array_position(queues, queue_id), cardinality(queues) + 1);
    queues[place] := queue_id;
    steps[place] := ropeway.count_move(
        ropeway.add_entry(
            steps[place], ropeway.entry('{{PROMOTE}}', instant, 'waiting', '["' || job_id || '",null]'), 1
        ),
        'delayed', 'waiting'
    );
    PERFORM ropeway.wake(queue_id, 'jobs', true, true);
END
$$;
