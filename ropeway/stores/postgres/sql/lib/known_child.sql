-- Looks up whether the parents of a job that is added know it already.
-- Takes the flow (see `flow_parents`), the job's set of parents, the ids of the queues that the flow names, and the job's
-- queue and id.
-- Returns the families of the parents, whether none of them knows it, and whether all do.
CREATE OR REPLACE FUNCTION ropeway.known_child(
    flow json, set_of integer, flow_queues integer[], queue_id integer, job_id text,
    OUT families bigint[], OUT is_new boolean, OUT is_known boolean
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(parent.family ORDER BY parent.n), bool_and(link.id IS NULL), bool_and(link.id IS NOT NULL)
    INTO families, is_new, is_known
    FROM (
        SELECT
            n,
            (
                SELECT j.family FROM ropeway.job AS j
                WHERE j.queue = flow_queues[(one ->> 1)::integer] AND j.id = one ->> 2
            ) AS family
        FROM json_array_elements(flow -> 'parents_at') WITH ORDINALITY AS given (one, n)
        WHERE (one ->> 0)::integer = set_of
    ) AS parent
    LEFT JOIN ropeway.link ON link.family = parent.family AND link.queue = queue_id AND link.id = job_id;
END
$$;
