-- Does what follows from the end of jobs that have ties. Parents are told that children of theirs have ended. They may end
-- too, and have parents that are told in turn.
--
--     settle a ──> end_jobs ──news──> conclude: lock families ──> note_ends ──judgements──> judge ──> release
--                                        ^                                                    ├──> fail_by_children
--                                        └─────────── news of parents that ended ─────────────┴──> remove_trees
--
-- Two calls may end the last two children of a parent at the same moment. Each locks the family before it counts down, and
-- reads it in a later statement: the second one waits, and then sees what the first has counted. So exactly one of them
-- finds that no child is left.
--
-- When all parents are told, the dedupe keys of all that ended are freed, and follow-ups are added.
--
-- Calls lock their jobs first, then families, then parents that wait, then dedupe keys, then queues, then what is numbered.
-- Families are locked in descending order: a parent's id is less than those of all its descendants, so a failure that goes
-- upward keeps to it. Keys are locked in their order. Writers of schedules take turns before all that. What has to be locked in
-- another order is not waited for, or only briefly: then the call fails, and its caller tries again.
--
-- Takes the step, the queue, the news (or null), the instant, judgements that do not come from news (or null), and the least
-- of the families that are locked already (or null).
-- Returns the step. Those of other queues are written.
CREATE OR REPLACE FUNCTION ropeway.conclude(
    INOUT s ropeway.step, queue_id integer, news ropeway.news[], instant bigint,
    judged ropeway.judgement[] DEFAULT NULL, lowest bigint DEFAULT NULL
)
LANGUAGE plpgsql AS $$
DECLARE
    queues integer[] := ARRAY[queue_id];
    steps ropeway.step[] := ARRAY[s];
    revoked ropeway.revoked[];
    wanted bigint[];
    leaving ropeway.news[] := '{}';
    follow_ups json;
    after record;
BEGIN
    LOOP
        IF judged IS NOT NULL THEN
            after := ropeway.judge(queues, steps, revoked, judged, instant);
            queues := after.queues;
            steps := after.steps;
            revoked := after.revoked;
            news := news || after.news;
        END IF;
        EXIT WHEN news IS NULL;
        leaving := leaving || ARRAY(
            SELECT ROW(given.*)::ropeway.news FROM unnest(news) AS given
            WHERE given.key IS NOT NULL OR given.follow_ups IS NOT NULL
        );
        wanted := ARRAY(SELECT DISTINCT unnest(given.families) FROM unnest(news) AS given ORDER BY 1 DESC NULLS LAST);
        wanted := array_remove(wanted, NULL);
        IF lowest IS NULL OR wanted[1] <= lowest THEN
            PERFORM FROM ropeway.family AS f WHERE f.id = ANY (wanted) ORDER BY f.id DESC FOR UPDATE;
        ELSE
            PERFORM FROM ropeway.family AS f WHERE f.id = ANY (wanted) ORDER BY f.id DESC FOR UPDATE NOWAIT;
        END IF;
        lowest := least(lowest, wanted[cardinality(wanted)]);
        judged := ropeway.note_ends(news);
        news := NULL;
    END LOOP;
    IF leaving <> '{}' THEN
        after := ropeway.free_keys(queues, steps, leaving, instant);
        queues := after.queues;
        steps := after.steps;
        follow_ups := (
            SELECT json_agg(added.value)
            FROM unnest(leaving) AS given CROSS JOIN LATERAL json_array_elements(given.follow_ups::json) AS added (value)
        );
        IF follow_ups IS NOT NULL THEN
            PERFORM ropeway.add_listed(follow_ups, instant, true);
        END IF;
    END IF;
    s := steps[1];
    FOR n IN 2 .. cardinality(queues) LOOP
        PERFORM ropeway.write_step(steps[n], queues[n], instant, false, true);
    END LOOP;
    IF revoked IS NOT NULL THEN
        PERFORM ropeway.revoke_locks(lost.queue, lost.ids, lost.tokens, 'removed', instant), ropeway.wake(lost.queue, 'jobs', true)
        FROM (
            SELECT each.queue, array_agg(each.id) AS ids, array_agg(each.token) AS tokens
            FROM unnest(revoked) AS each GROUP BY each.queue ORDER BY each.queue
        ) AS lost;
    END IF;
END
$$;
