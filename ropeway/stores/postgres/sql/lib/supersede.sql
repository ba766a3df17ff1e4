-- Cancels jobs of a queue because a new one takes their place.
-- Takes the effects of the call, the queue, the ids, the id of the new job, and the instant. The jobs must be locked.
-- Returns the effects.
CREATE OR REPLACE FUNCTION ropeway.supersede(
    INOUT done ropeway.effects, queue_id integer, ids text[], by_id text, instant bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    reason CONSTANT text := '{{SUPERSEDED}}' || by_id;
    place CONSTANT integer := coalesce(array_position(done.queues, queue_id), cardinality(done.queues) + 1);
    s ropeway.step := done.steps[place];
    job ropeway.whole_job;
    keep record;
    lost ropeway.active[];
    details text[];
    ages bigint[];
    counts bigint[];
    ended record;
    job_id text;
BEGIN
    FOREACH job_id IN ARRAY ids LOOP
        SELECT p.* INTO job FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = job_id;
        CONTINUE WHEN NOT FOUND OR job.state IN ({{FINAL}});
        IF job.state = 'active' THEN
            done.revoked := done.revoked || ROW(NULL, instant, queue_id, job.id, job.token, NULL)::ropeway.revoked;
        END IF;
        PERFORM ropeway.delete_state(job);
        keep := ropeway.stored_options(job.options, {{OPTION_DEFAULTS}});
        s := ropeway.count_move(s, job.state, NULL);
        details := details || ('{"prev":"' || job.state || '"}');
        job.reason := reason;
        -- The worker still runs the handler: without its token a late result is refused.
        job.token := NULL;
        lost := lost || ropeway.active_row(job);
        ages := array_append(ages, keep.age);
        counts := array_append(counts, keep.count);
    END LOOP;
    IF lost IS NULL THEN
        RETURN;
    END IF;
    ended := ropeway.end_detached(
        s, queue_id, '{{CANCEL}}', 'cancelled', lost, NULL, details, '{"reason":' || to_json(reason) || '}', ages, counts,
        instant
    );
    done.queues[place] := queue_id;
    done.steps[place] := ended.s;
    done.news := done.news || ended.news;
END
$$;
