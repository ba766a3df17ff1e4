-- Removes jobs of one state, the oldest first: finished ones by when they finished, others by when they were added.
-- Takes the queue, the state, how old they must be, how many at most, the instant, and whether it may wake listeners.
-- Returns their ids, whether others remain, and the wakes as `wake` says them.
CREATE OR REPLACE FUNCTION ropeway.clean(
    queue_name text, of_state ropeway.state, older_than bigint, most integer, at bigint DEFAULT NULL,
    may_wake boolean DEFAULT NULL, OUT ids text[], OUT more boolean, OUT wakes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    last bigint := instant - older_than;
    queue_id integer;
    job ropeway.place;
    job_id text;
    removed text[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    -- One more than may go says whether others remain. No index is kept for those that are not finished: all are looked at.
    IF of_state IN ('completed', 'failed', 'cancelled') THEN
        ids := ARRAY(
            SELECT old.id
            FROM (
                SELECT * FROM (
                    SELECT f.id, f.finished_at, f.seq FROM ropeway.finished AS f
                    WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NOT NULL AND f.finished_at <= last
                    ORDER BY f.finished_at, f.seq LIMIT most + 1 FOR UPDATE SKIP LOCKED
                ) AS counted
                UNION ALL
                SELECT * FROM (
                    SELECT f.id, f.finished_at, f.seq FROM ropeway.finished AS f
                    WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NULL AND f.finished_at <= last
                    ORDER BY f.finished_at, f.seq LIMIT most + 1 FOR UPDATE SKIP LOCKED
                ) AS kept
            ) AS old
            ORDER BY old.finished_at, old.seq LIMIT most + 1
        );
    ELSIF of_state = 'waiting' THEN
        ids := ARRAY(
            SELECT w.id FROM ropeway.waiting AS w
            JOIN ropeway.job AS j ON j.queue = w.queue AND j.id = w.id
            WHERE w.queue = queue_id AND j.created_at <= last
            ORDER BY j.created_at, abs(w.ord) LIMIT most + 1 FOR UPDATE OF w SKIP LOCKED
        );
    ELSE
        ids := ARRAY(
            SELECT l.id FROM ropeway.later AS l
            JOIN ropeway.job AS j ON j.queue = l.queue AND j.id = l.id
            WHERE l.queue = queue_id AND (l.due_at IS NULL) = (of_state = 'waiting-children') AND j.created_at <= last
            ORDER BY j.created_at, abs(l.ord) LIMIT most + 1 FOR UPDATE OF l SKIP LOCKED
        );
    END IF;
    more := cardinality(ids) > most;
    ids := ids[1:most];
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    FOREACH job_id IN ARRAY ids LOOP
        SELECT p.* INTO job FROM ropeway.place AS p WHERE p.queue = queue_id AND p.id = job_id;
        PERFORM ropeway.drop_job(job, instant);
        removed := removed || ('["' || job.id || '",{"prev":"' || job.state || '"}]');
    END LOOP;
    s := ropeway.moved(s, of_state, NULL, cardinality(ids));
    s := ropeway.told(s, ropeway.entry('remove', instant, NULL, array_to_string(removed, ',')), cardinality(ids));
    s := ropeway.told(
        s,
        ropeway.entry(
            'cleaned', instant, NULL, NULL, '{"count":' || cardinality(ids) || ',"state":"' || of_state || '"}'
        ),
        1
    );
    s.metric_removed := cardinality(ids);
    wakes := ropeway.write(s, queue_id, instant, false, may_wake);
END
$$;
