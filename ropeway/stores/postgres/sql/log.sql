-- Reads some lines of a job's log.
-- Takes the queue, the job's id, the number of the line before them (null: none), how many at most, and whether backwards.
-- Returns no row if the job is not there; else the lines' numbers, instants and texts, and how many lines were ever logged.
CREATE OR REPLACE FUNCTION ropeway.log(
    queue_name text, job_id text, after bigint, most bigint, backwards boolean
) RETURNS TABLE (numbers integer[], ats bigint[], texts text[], logged integer)
-- One moment for all of its statements: no line is written or dropped between them.
LANGUAGE plpgsql STABLE
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    job_seq bigint;
BEGIN
    SELECT abs(p.ord), coalesce(p.logged, ropeway.raise_no_state(p.id)) INTO job_seq, logged FROM ropeway.whole_job AS p
    WHERE p.queue = (SELECT q.id FROM ropeway.queue AS q WHERE q.name = queue_name) AND p.id = job_id;
    IF NOT FOUND THEN
        RETURN;
    ELSIF backwards THEN
        SELECT array_agg(page.number), array_agg(page.at), array_agg(page.text) INTO numbers, ats, texts
        FROM (
            SELECT l.number, l.at, l.text FROM ropeway.log_line AS l
            WHERE l.seq = job_seq AND l.number < coalesce(after, log.logged + 1)
            ORDER BY l.number DESC
            LIMIT most
        ) AS page;
    ELSE
        SELECT array_agg(page.number), array_agg(page.at), array_agg(page.text) INTO numbers, ats, texts
        FROM (
            SELECT l.number, l.at, l.text FROM ropeway.log_line AS l
            WHERE l.seq = job_seq AND l.number > coalesce(after, 0)
            ORDER BY l.number
            LIMIT most
        ) AS page;
    END IF;
    RETURN NEXT;
END
$$;
