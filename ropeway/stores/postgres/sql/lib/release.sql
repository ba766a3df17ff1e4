-- Lets parents go on: they wait in line, or for their own delay, which begins now.
-- Takes the queues of the call and their steps, the families of the parents, which must be locked as they are, and the
-- instant.
-- Returns the queues and steps.
CREATE OR REPLACE FUNCTION ropeway.release(
    INOUT queues integer[], INOUT steps ropeway.step[], families bigint[], instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    queue_of integer[];
    ids text[];
    dues bigint[];
    alike record;
    place integer;
BEGIN
    WITH opened AS (
        UPDATE ropeway.family AS f SET is_released = true, delay = 0, due_at = NULL
        FROM (
            SELECT
                closed.id,
                CASE
                    WHEN closed.delay > 0 THEN least(instant + closed.delay, {{LAST_INSTANT}})
                    WHEN closed.due_at > instant THEN closed.due_at
                END AS due
            FROM ropeway.family AS closed
            WHERE closed.id = ANY (families)
        ) AS closed
        WHERE f.id = closed.id
        RETURNING f.queue, f.parent AS id, closed.due
    ), gone AS (
        DELETE FROM ropeway.later AS l USING opened
        WHERE opened.due IS NULL AND l.queue = opened.queue AND l.id = opened.id
        RETURNING l.*
    ), lined AS (
        INSERT INTO ropeway.waiting (ord, queue, priority, {{CARRIED}}, reason, start_by)
        SELECT gone.ord, gone.queue, gone.priority, {{CARRIED_OF_GONE}}, gone.reason, gone.start_by FROM gone
    ), delayed AS (
        UPDATE ropeway.later AS l SET due_at = opened.due FROM opened
        WHERE opened.due IS NOT NULL AND l.queue = opened.queue AND l.id = opened.id
    )
    SELECT array_agg(opened.queue), array_agg(opened.id), array_agg(opened.due) INTO queue_of, ids, dues FROM opened;
    FOR alike IN
        SELECT
            given.queue, CASE WHEN given.due IS NULL THEN 'waiting' ELSE 'delayed' END AS entered, count(*)::integer AS amount,
            string_agg('["' || given.id || '",' || coalesce('{"due_at":' || given.due || '}', 'null') || ']', ',') AS listed
        FROM unnest(queue_of, ids, dues) AS given (queue, id, due)
        GROUP BY 1, 2
    LOOP
        place := coalesce(array_position(queues, alike.queue), cardinality(queues) + 1);
        queues[place] := alike.queue;
        steps[place] := ropeway.count_move(
            ropeway.add_entry(
                steps[place], ropeway.entry('{{RELEASE}}', instant, alike.entered, alike.listed), alike.amount
            ),
            'waiting-children', alike.entered::ropeway.state, alike.amount
        );
    END LOOP;
END
$$;
