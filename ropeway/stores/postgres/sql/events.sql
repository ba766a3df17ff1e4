-- Reads the event stream of a queue, after folding the steps that are not folded yet.
-- Takes the queue, the number of the first step to read (null: the oldest), how many steps at most, and whether to read
-- from there (null: from the newest) back to older ones.
-- Returns the numbers and entries of steps (json, comma separated), where the stream begins (`events_from` of `tally`),
-- and the number of the newest event.
CREATE OR REPLACE FUNCTION ropeway.events(
    queue_name text, from_number bigint, most integer, newest_first boolean,
    OUT numbers bigint[], OUT entries text[], OUT events_from bigint, OUT newest bigint
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}}
AS $$
DECLARE
    queue_id integer;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    WHILE EXISTS (SELECT FROM ropeway.step WHERE step.queue = queue_id AND step.number IS NULL) LOOP
        PERFORM ropeway.fold(queue_id);
    END LOOP;
    IF newest_first THEN
        SELECT array_agg(page.number), array_agg(page.entries) INTO numbers, entries
        FROM (
            SELECT step.number, step.entries FROM ropeway.step
            WHERE step.queue = queue_id AND step.number IS NOT NULL
                AND step.number <= coalesce(from_number, 9223372036854775807)
                AND step.events > 0
            ORDER BY step.number DESC
            LIMIT most
        ) AS page;
    ELSE
        SELECT array_agg(page.number), array_agg(page.entries) INTO numbers, entries
        FROM (
            SELECT step.number, step.entries FROM ropeway.step
            WHERE step.queue = queue_id AND step.number IS NOT NULL AND step.number >= coalesce(from_number, 0)
                AND step.events > 0
            ORDER BY step.number
            LIMIT most
        ) AS page;
    END IF;
    -- After the steps: a reader that starts at the beginning then notices if that is trimmed meanwhile.
    SELECT t.events_from, t.events INTO events_from, newest
    FROM ropeway.tally AS t WHERE t.queue = queue_id ORDER BY t.fold DESC LIMIT 1;
    IF NOT FOUND THEN
        events_from := 0;
        newest := 0;
    END IF;
END
$$;
