-- Removes jobs of one state, the oldest first: finished ones by when they finished, others by when they were
-- added. Jobs of schedules are left until they are final.
-- Takes the queue, the state, the least age, how many at most, the instant, and whether it may notify.
-- Returns their ids, whether others remain, and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.clean(
    queue_name text, of_state ropeway.state, older_than bigint, most integer, at bigint DEFAULT NULL,
    may_wake boolean DEFAULT NULL, OUT ids text[], OUT more boolean, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    last bigint := instant - older_than;
    queue_id integer;
    seqs bigint[];
    ctids tid[];
    dropped record;
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    -- One more than may go says whether others remain. No index is kept for those that are not finished: all are looked at.
    IF of_state IN ({{FINAL}}) THEN
        SELECT array_agg(old.id), array_agg(old.seq), array_agg(old.row_ctid) INTO ids, seqs, ctids
        FROM (
            SELECT * FROM (
                SELECT * FROM (
                    SELECT f.id, f.finished_at, f.seq, f.ctid AS row_ctid FROM ropeway.finished AS f
                    WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NOT NULL AND f.finished_at <= last
                    ORDER BY f.finished_at, f.seq LIMIT most + 1 FOR UPDATE SKIP LOCKED
                ) AS counted
                UNION ALL
                SELECT * FROM (
                    SELECT f.id, f.finished_at, f.seq, f.ctid AS row_ctid FROM ropeway.finished AS f
                    WHERE f.queue = queue_id AND f.state = of_state AND f.expires_at IS NULL AND f.finished_at <= last
                    ORDER BY f.finished_at, f.seq LIMIT most + 1 FOR UPDATE SKIP LOCKED
                ) AS kept
            ) AS either
            ORDER BY either.finished_at, either.seq LIMIT most + 1
        ) AS old;
    ELSIF of_state = 'waiting' THEN
        SELECT array_agg(old.id), array_agg(old.seq), array_agg(old.row_ctid) INTO ids, seqs, ctids
        FROM (
            SELECT w.id, abs(w.ord) AS seq, w.ctid AS row_ctid FROM ropeway.waiting AS w
            JOIN ropeway.job AS j ON j.queue = w.queue AND j.id = w.id
            WHERE w.queue = queue_id AND j.created_at <= last AND j.extras::json ->> 'schedule' IS NULL
            ORDER BY j.created_at, abs(w.ord) LIMIT most + 1 FOR UPDATE OF w SKIP LOCKED
        ) AS old;
    ELSE
        SELECT array_agg(old.id), array_agg(old.seq), array_agg(old.row_ctid) INTO ids, seqs, ctids
        FROM (
            SELECT l.id, abs(l.ord) AS seq, l.ctid AS row_ctid FROM ropeway.later AS l
            JOIN ropeway.job AS j ON j.queue = l.queue AND j.id = l.id
            WHERE l.queue = queue_id AND (l.due_at IS NULL) = (of_state = 'waiting-children') AND j.created_at <= last
                AND j.extras::json ->> 'schedule' IS NULL
            ORDER BY j.created_at, abs(l.ord) LIMIT most + 1 FOR UPDATE OF l SKIP LOCKED
        ) AS old;
    END IF;
    more := coalesce(cardinality(ids) > most, false);
    ids := coalesce(ids[1:most], '{}');
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    CASE of_state
        WHEN 'waiting' THEN
            DELETE FROM ropeway.waiting AS w WHERE w.ctid = ANY (ctids[1:most]);
        WHEN 'delayed', 'waiting-children' THEN
            DELETE FROM ropeway.later AS l WHERE l.ctid = ANY (ctids[1:most]);
        ELSE
            DELETE FROM ropeway.finished AS f WHERE f.ctid = ANY (ctids[1:most]);
    END CASE;
    s := ropeway.count_move(s, of_state, NULL, cardinality(ids));
    dropped := ropeway.drop_jobs(
        s, queue_id, ids, array_fill(of_state, ARRAY[cardinality(ids)]), seqs[1:most], instant, true
    );
    s := dropped.s;
    IF dropped.news IS NOT NULL THEN
        s := ropeway.conclude(s, queue_id, dropped.news, instant, NULL, dropped.lowest);
    END IF;
    s := ropeway.add_entry(
        s,
        ropeway.entry(
            '{{CLEANED}}', instant, NULL, NULL, '{"count":' || cardinality(ids) || ',"state":"' || of_state || '"}'
        ),
        1
    );
    wakes := ropeway.write_step(s, queue_id, instant, false, may_wake);
END
$$;
