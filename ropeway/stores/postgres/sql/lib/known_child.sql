-- Looks up whether the parents of a job that is added get it as a child: those that are added too, or that add it while
-- they run. A parent that was there before is found as it is, with the children that it has, which may be gone by now.
-- Takes the job's set of parents (json, the elements of `parents_at`, see `flow_parents`), the ids of the queues that the flow
-- names, the families of the parents that its bundle has added, and the job's queue and id.
-- Returns the families of the parents, whether all of them get it, and whether none does.
CREATE OR REPLACE FUNCTION ropeway.known_child(
    parents_at json, flow_queues integer[], added bigint[], queue_id integer, job_id text,
    OUT families bigint[], OUT is_new boolean, OUT is_known boolean
)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT array_agg(parent.family ORDER BY parent.n), bool_and(gets.it), NOT bool_or(gets.it)
    INTO families, is_new, is_known
    FROM (
        SELECT
            n, (one ->> 3)::integer AS position,
            (
                SELECT j.family FROM ropeway.job AS j
                WHERE j.queue = flow_queues[(one ->> 1)::integer] AND j.id = one ->> 2
            ) AS family
        FROM json_array_elements(parents_at) WITH ORDINALITY AS given (one, n)
    ) AS parent
    LEFT JOIN ropeway.link ON link.family = parent.family AND link.queue = queue_id AND link.id = job_id
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN parent.position IS NULL THEN link.id IS NULL ELSE coalesce(parent.family = ANY (added), false)
        END AS it
    ) AS gets;
END
$$;
