-- Lists the locks of running jobs that were revoked.
-- Takes the queue, and the number of the last one known (null: only the newest number is asked for).
-- Returns ids, tokens and what became of the jobs, in order, and the newest number.
CREATE OR REPLACE FUNCTION ropeway.revoked(
    queue_name text, after bigint, OUT ids text[], OUT tokens text[], OUT whys text[], OUT newest bigint
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}}
AS $$
DECLARE
    queue_id integer;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    SELECT
        array_agg(r.id ORDER BY r.number), array_agg(r.token ORDER BY r.number), array_agg(r.why ORDER BY r.number),
        max(r.number)
    INTO ids, tokens, whys, newest
    FROM ropeway.revoked AS r WHERE r.queue = queue_id AND r.number > coalesce(after, 0);
    newest := coalesce(newest, after, 0);
END
$$;
