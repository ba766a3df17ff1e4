-- Writes progress and marks of active jobs, all with one statement.
--
-- New marks go behind others in the row of the job's state: a list of JSON lists, comma separated, each of an instant, and a
-- name and a value for each mark that was written then, such as
--     [1790000000000,"step:fetch","{\"rows\":3}","step:old",null]
-- A null deletes the mark. The last one of a name counts. What is more than {{MARKS_IN_ROW}} bytes becomes rows of `mark`.
--
-- Takes the queue, ids (each once, in order) and tokens, the progress of each (null: unchanged) and its marks (names and values
-- as in the list; null: none), and the instant.
-- Returns for each whether it is active under its token; null if all are.
CREATE OR REPLACE FUNCTION ropeway.write_held(
    queue_id integer, ids text[], tokens text[], progresses text[], marks text[], instant bigint
) RETURNS boolean[]
LANGUAGE plpgsql AS $$
DECLARE
    written text[];
    full_ids text[];
    full_marks text[];
BEGIN
    WITH changed AS (
        UPDATE ropeway.active AS a SET
            progress = coalesce(own.progress, a.progress),
            marks = CASE
                WHEN own.added IS NULL THEN a.marks
                WHEN coalesce(octet_length(a.marks), 0) + octet_length(own.added) <= {{MARKS_IN_ROW}}
                    THEN concat(a.marks || ',', '[', instant, ',', own.added, ']')
            END
        FROM (
            -- LATERAL and LIMIT: each by its key, in the order of ids, whatever the statistics of the table.
            SELECT held.row_ctid, held.marks, given.progress, given.marks AS added
            FROM unnest(ids, tokens, progresses, marks) AS given (id, token, progress, marks)
            CROSS JOIN LATERAL (
                SELECT each.ctid AS row_ctid, each.marks FROM ropeway.active AS each
                WHERE each.queue = queue_id AND each.id = given.id AND each.token = given.token
                LIMIT 1
            ) AS held
        ) AS own
        WHERE a.ctid = own.row_ctid
        RETURNING a.id, CASE
            WHEN own.added IS NOT NULL AND a.marks IS NULL THEN concat(own.marks || ',', '[', instant, ',', own.added, ']')
        END AS too_long
    )
    SELECT
        array_agg(changed.id), array_agg(changed.id) FILTER (WHERE changed.too_long IS NOT NULL),
        array_agg(changed.too_long) FILTER (WHERE changed.too_long IS NOT NULL)
    INTO written, full_ids, full_marks
    FROM changed;
    IF full_ids IS NOT NULL THEN
        PERFORM ropeway.store_marks(queue_id, job.id, job.marks) FROM unnest(full_ids, full_marks) AS job (id, marks);
    END IF;
    IF cardinality(written) = cardinality(ids) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (
        SELECT FROM unnest(ids, tokens) AS given (id, token)
        JOIN ropeway.active AS a ON a.queue = queue_id AND a.id = given.id AND a.token = given.token
        WHERE written IS NULL OR given.id <> ALL (written)
    ) THEN
        -- Locking it now, while others are held, could deadlock: the caller tries again.
        RAISE serialization_failure USING MESSAGE = 'a lock was renewed meanwhile';
    END IF;
    RETURN ARRAY(
        SELECT coalesce(given.id = ANY (written), false) FROM unnest(ids) WITH ORDINALITY AS given (id, n) ORDER BY given.n
    );
END
$$;
