-- Writes the marks of outcomes that will be accepted, and finds what postponed jobs wait for.
-- Takes the step, the queue, the ids and tokens of all outcomes, of which the first ones are plain completions, the number of
-- these, the delays of the others; JSON, as `write_marks` takes it, and `awaits` (lists of the position of an outcome and the
-- name of a mark); the values of the marks, and the instant.
-- Returns the step, the delays, where none is left if the mark is there, and the ids of jobs for which it is not, with its
-- name.
CREATE OR REPLACE FUNCTION ropeway.mark_outcomes(
    INOUT s ropeway.step, queue_id integer, ids text[], tokens text[], plain integer, INOUT delays bigint[], given json,
    mark_values text[], instant bigint, OUT awaiting text[], OUT awaited text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    mark_of CONSTANT integer[] := ropeway.texts_of_json(given -> 'of');
    numbers bigint[];
    new_ids text[];
    one record;
BEGIN
    -- All locks in the order of ids, so that no two calls wait for each other.
    PERFORM FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = ANY (ids) ORDER BY a.id FOR UPDATE;
    SELECT
        array_agg(coalesce(job.marks, abs(job.ord)) ORDER BY outcome.n),
        array_agg(job.id) FILTER (WHERE job.marks IS NULL AND outcome.n = ANY (mark_of))
    INTO numbers, new_ids
    FROM unnest(ids, tokens) WITH ORDINALITY AS outcome (id, token, n)
    LEFT JOIN LATERAL (
        SELECT j.id, j.ord, j.marks FROM ropeway.active AS a
        JOIN ropeway.job AS j ON j.queue = a.queue AND j.id = a.id
        WHERE a.queue = queue_id AND a.id = outcome.id AND a.token = outcome.token
        LIMIT 1
    ) AS job ON true;
    s := ropeway.write_marks(s, queue_id, ids, numbers, new_ids, given, mark_values, instant);
    FOR one IN
        SELECT (each ->> 0)::integer AS n, each ->> 1 AS name FROM json_array_elements(given -> 'awaits') AS each
    LOOP
        IF EXISTS (SELECT FROM ropeway.mark AS m WHERE m.number = numbers[one.n] AND m.name = one.name) THEN
            -- As `settle_one` takes it.
            delays[one.n - plain] := CASE WHEN delays[one.n - plain] < 0 THEN -1 ELSE 0 END;
        ELSIF numbers[one.n] IS NOT NULL THEN
            awaiting := awaiting || ids[one.n];
            awaited := awaited || one.name;
        END IF;
    END LOOP;
END
$$;
