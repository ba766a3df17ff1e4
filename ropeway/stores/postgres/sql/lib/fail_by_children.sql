-- Makes parents fail that wait, because a child of theirs failed.
-- Takes the queues of the call and their steps, the judgements, and the instant. The parents must be locked.
-- Returns the queues and steps, and news for the parents of those (see `end_jobs`).
CREATE OR REPLACE FUNCTION ropeway.fail_by_children(
    INOUT queues integer[], INOUT steps ropeway.step[], failing ropeway.judgement[], instant bigint,
    OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    queue_id integer;
    one ropeway.judgement;
    place integer;
    job ropeway.whole_job;
    keep record;
    lost ropeway.active[];
    details text[];
    ages bigint[];
    counts bigint[];
    ended record;
BEGIN
    FOR queue_id IN SELECT DISTINCT given.queue FROM unnest(failing) AS given ORDER BY 1 LOOP
        lost := NULL;
        details := NULL;
        ages := NULL;
        counts := NULL;
        FOREACH one IN ARRAY failing LOOP
            CONTINUE WHEN one.queue <> queue_id;
            SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = one.queue AND p.id = one.id;
            PERFORM ropeway.delete_state(job);
            job.reason := one.reason;
            -- Without its token a late settle of the attempt that waits is refused.
            job.token := NULL;
            keep := ropeway.stored_options(job.options, {{OPTION_DEFAULTS}});
            lost := lost || ropeway.active_row(job);
            details := details || ('{"reason":' || to_json(one.reason) || '}');
            ages := array_append(ages, keep.age);
            counts := array_append(counts, keep.count);
        END LOOP;
        place := coalesce(array_position(queues, queue_id), cardinality(queues) + 1);
        queues[place] := queue_id;
        ended := ropeway.end_detached(
            ropeway.count_move(steps[place], 'waiting-children', NULL, cardinality(lost)), queue_id, '{{FAIL_BY_CHILD}}',
            'failed', lost, NULL, details, NULL, ages, counts, instant
        );
        steps[place] := ended.s;
        news := news || ended.news;
    END LOOP;
END
$$;
