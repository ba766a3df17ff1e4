-- Writes and deletes marks of jobs, and announces what is to be announced with them.
-- Takes the step, the queue, the ids of the jobs, for each its number in `mark` (null: it gets none), the ids of those that
-- have no marks yet; JSON: for each mark `of` (the position of its job) and `names`, and `notices` (lists of the position of a
-- job, what, and details); the value of each mark (null: it is deleted), and the instant. A job must be locked. Of several
-- marks of one name the last one counts.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.write_marks(
    INOUT s ropeway.step, queue_id integer, ids text[], numbers bigint[], new_ids text[], given json, mark_values text[],
    instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    mark_of CONSTANT integer[] := ropeway.texts_of_json(given -> 'of');
    names CONSTANT text[] := ropeway.texts_of_json(given -> 'names');
    listed text;
    amount integer;
BEGIN
    IF new_ids IS NOT NULL THEN
        UPDATE ropeway.job AS j SET marks = abs(j.ord) WHERE j.queue = queue_id AND j.id = ANY (new_ids);
    END IF;
    IF array_position(mark_values, NULL) IS NOT NULL THEN
        DELETE FROM ropeway.mark AS m
        USING (
            -- LATERAL and LIMIT: each by its key, whatever the statistics of the table.
            SELECT DISTINCT own.row_ctid
            FROM unnest(mark_of, names, mark_values) AS one (job, name, value)
            CROSS JOIN LATERAL (
                SELECT old.ctid AS row_ctid FROM ropeway.mark AS old
                WHERE old.number = numbers[one.job] AND old.name = one.name
                LIMIT 1
            ) AS own
            WHERE one.value IS NULL
        ) AS gone
        WHERE m.ctid = gone.row_ctid;
    END IF;
    IF cardinality(mark_of) > 0 THEN
        INSERT INTO ropeway.mark (number, at, name, value)
        SELECT newest.number, instant, newest.name, newest.value
        FROM (
            SELECT DISTINCT ON (numbers[one.job], one.name COLLATE "C") numbers[one.job] AS number, one.name, one.value
            FROM unnest(mark_of, names, mark_values) WITH ORDINALITY AS one (job, name, value, n)
            WHERE numbers[one.job] IS NOT NULL
            ORDER BY numbers[one.job], one.name COLLATE "C", one.n DESC
        ) AS newest
        WHERE newest.value IS NOT NULL
        ON CONFLICT (number, name) DO UPDATE SET at = excluded.at, value = excluded.value;
    END IF;
    IF given -> 'notices' IS NOT NULL THEN
        SELECT
            count(*), string_agg(
                ropeway.entry(one ->> 1, instant, NULL, '["' || ids[(one ->> 0)::integer] || '",' || (one ->> 2) || ']'),
                ',' ORDER BY each.n
            )
        INTO amount, listed
        FROM json_array_elements(given -> 'notices') WITH ORDINALITY AS each (one, n)
        WHERE numbers[(one ->> 0)::integer] IS NOT NULL;
        IF amount > 0 THEN
            s := ropeway.add_entry(s, listed, amount);
        END IF;
    END IF;
END
$$;
