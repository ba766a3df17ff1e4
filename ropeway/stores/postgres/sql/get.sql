-- Reads jobs.
-- Takes the queue and ids.
-- Returns a row for each that exists, with the fields of a record in their order.
CREATE OR REPLACE FUNCTION ropeway.get(queue_name text, ids text[]) RETURNS TABLE (
    {{RECORD}}
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{BY_KEY}}
AS $$
BEGIN
    RETURN QUERY
    SELECT
        {{RECORD_OF_WHOLE_JOB}}, CASE
            WHEN p.marks IS NOT NULL OR p.older_marks IS NOT NULL THEN ropeway.marks_of(p.older_marks, p.marks)
        END
    FROM (SELECT DISTINCT unnest(ids) AS id) AS given
    -- One by one, whatever the statistics of the tables: see `find`.
    CROSS JOIN LATERAL (
        SELECT whole_job.* FROM ropeway.whole_job
        WHERE whole_job.queue = (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name) AND whole_job.id = given.id
        OFFSET 0
    ) AS p;
END
$$;
