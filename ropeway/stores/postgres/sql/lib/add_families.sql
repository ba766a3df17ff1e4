-- Stores what parents know of their children, when both were added.
-- Takes JSON (see `flow_parents`): for each link `link_of`, the position of the parent among the jobs, `link_queues`, that of
-- the child's queue, `link_ids` and `link_policies`. Then the ids of the queues, and for each job its sequence number (null: it
-- was not added now), queue id, id, delay and due_at; and the first of the jobs that it concerns.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.add_families(
    flow json, queue_ids integer[], seqs bigint[], queue_of integer[], ids text[], delays bigint[], dues bigint[],
    first integer
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH given AS MATERIALIZED (
        SELECT each.of::integer AS of, each.queue::integer AS queue, each.id, each.policy, each.n
        FROM unnest(
            ropeway.texts_of_json(flow -> 'link_of'), ropeway.texts_of_json(flow -> 'link_queues'),
            ropeway.texts_of_json(flow -> 'link_ids'), ropeway.texts_of_json(flow -> 'link_policies')
        ) WITH ORDINALITY AS each (of, queue, id, policy, n)
        WHERE each.of::integer >= first AND seqs[each.of::integer] IS NOT NULL
    ), linked AS (
        INSERT INTO ropeway.link (family, number, queue, id, policy, state)
        SELECT seqs[given.of], given.n, queue_ids[given.queue], given.id, given.policy, '{{CHILD_PENDING}}' FROM given
    )
    INSERT INTO ropeway.family (id, delay, due_at, queue, total, awaited, newest, parent)
    SELECT
        seqs[given.of], coalesce(delays[given.of], 0), dues[given.of], queue_of[given.of], count(*), count(*),
        max(given.n), ids[given.of]
    FROM given
    GROUP BY given.of;
END
$$;
