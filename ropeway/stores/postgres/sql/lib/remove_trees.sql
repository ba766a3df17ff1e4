-- Removes parents with their unfinished descendants, except those for which another job waits.
-- Takes the queues of the call and their steps, the locks that it revokes, the judgements, and the instant. The parents must
-- be locked.
-- Returns the first three, and news for the parents of those (see `drop_jobs`).
CREATE OR REPLACE FUNCTION ropeway.remove_trees(
    INOUT queues integer[], INOUT steps ropeway.step[], INOUT revoked ropeway.revoked[], roots ropeway.judgement[],
    instant bigint, OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    -- The jobs of one level of the trees, and the families of those that have children.
    queue_of integer[];
    ids text[];
    leaving bigint[];
    place integer;
    alike record;
    gone record;
    dropped record;
    child_queues integer[];
    child_ids text[];
BEGIN
    SELECT array_agg(root.queue), array_agg(root.id), array_agg(root.family) INTO queue_of, ids, leaving
    FROM unnest(roots) AS root;
    WHILE ids IS NOT NULL LOOP
        -- What other calls have locked is not waited for: they may wait for a family.
        SELECT array_agg(held.queue), array_agg(held.id) INTO child_queues, child_ids
        FROM (SELECT DISTINCT l.queue, l.id FROM ropeway.link AS l WHERE l.family = ANY (leaving)) AS child
        CROSS JOIN LATERAL (
            SELECT j.queue, j.id FROM ropeway.job AS j
            WHERE j.queue = child.queue AND j.id = child.id AND j.families && leaving
            FOR UPDATE NOWAIT
        ) AS held
        WHERE NOT EXISTS (SELECT FROM ropeway.finished AS f WHERE f.queue = held.queue AND f.id = held.id);
        FOR alike IN
            SELECT given.queue, array_agg(given.id) AS ids FROM unnest(queue_of, ids) AS given (queue, id)
            GROUP BY given.queue ORDER BY given.queue
        LOOP
            gone := ropeway.detach_jobs(alike.queue, alike.ids, instant);
            revoked := revoked || gone.revoked;
            place := coalesce(array_position(queues, alike.queue), cardinality(queues) + 1);
            queues[place] := alike.queue;
            FOR n IN 1 .. cardinality(gone.ids) LOOP
                steps[place] := ropeway.count_move(steps[place], gone.states[n], NULL);
            END LOOP;
            dropped := ropeway.drop_jobs(steps[place], alike.queue, gone.ids, gone.states, gone.seqs, instant);
            steps[place] := dropped.s;
            news := news || dropped.news;
        END LOOP;
        WITH orphaned AS (
            UPDATE ropeway.job AS j
            SET families = nullif(
                    ARRAY(
                        SELECT each.family FROM unnest(j.families) WITH ORDINALITY AS each (family, n)
                        WHERE each.family <> ALL (leaving) ORDER BY each.n
                    ), '{}'
                ),
                parents = (
                    SELECT json_agg(each.parent ORDER BY each.n)::text
                    FROM json_array_elements(j.parents::json) WITH ORDINALITY AS each (parent, n)
                    WHERE j.families[each.n] <> ALL (leaving)
                )
            FROM unnest(child_queues, child_ids) AS given (queue, id)
            WHERE j.queue = given.queue AND j.id = given.id
            RETURNING j.queue, j.id, j.families, j.family
        )
        SELECT
            array_agg(orphaned.queue), array_agg(orphaned.id),
            array_agg(orphaned.family) FILTER (WHERE orphaned.family IS NOT NULL)
        INTO queue_of, ids, leaving
        FROM orphaned
        WHERE orphaned.families IS NULL;
    END LOOP;
END
$$;
