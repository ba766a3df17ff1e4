-- Finds the families of the parents of jobs that are added.
-- Takes JSON: `sets`, for each job the position of its set of parents (null: none); `are_parents`, whether each has children;
-- `parents`, the sets as they are stored (json texts); `parents_at`, for each parent of each set the position of the set, of
-- its queue, its id, and its own position among the jobs (null: it was added before); and the links (see `add_families`).
-- Then `sets` as an array, the ids of the queues, and for each job its sequence number, queue's position (null: the first) and id.
-- Returns for each set the parents and families, as they are stored; and whether a parent knows one of the jobs already.
CREATE OR REPLACE FUNCTION ropeway.flow_parents(
    flow json, sets integer[], queue_ids integer[], seqs bigint[], numbers integer[], ids text[], OUT parents text[],
    OUT families text[], OUT has_known boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    has_others boolean;
BEGIN
    parents := ropeway.texts_of_json(flow -> 'parents');
    SELECT array_agg(found.families::text ORDER BY found.set), coalesce(bool_or(found.has_others), false)
    INTO families, has_others
    FROM (
        SELECT
            (one ->> 0)::integer AS set,
            array_agg(
                coalesce(
                    seqs[(one ->> 3)::integer],
                    (
                        SELECT j.family FROM ropeway.job AS j
                        WHERE j.queue = queue_ids[(one ->> 1)::integer] AND j.id = one ->> 2
                    )
                )
                ORDER BY n
            ) AS families,
            bool_or(one ->> 3 IS NULL) AS has_others
        FROM json_array_elements(flow -> 'parents_at') WITH ORDINALITY AS given (one, n)
        GROUP BY 1
    ) AS found;
    has_known := has_others AND EXISTS (
        SELECT FROM unnest(sets, numbers, ids) AS job (set, number, id)
        CROSS JOIN LATERAL unnest(families[job.set]::bigint[]) AS parent (family)
        JOIN ropeway.link
            ON link.family = parent.family AND link.queue = queue_ids[coalesce(job.number, 1)] AND link.id = job.id
    );
END
$$;
