-- Adds bundles of jobs, each whole or not at all.
-- Takes the names of the queues; for each job the position of its queue among them (null: the first), its bundle (null:
-- one bundle), id, name, data, options, priority, lifo, delay, due_at and tags (json, a list), where a null array means
-- the default for all; their parents and children (see `flow_parents`; null: they have none); their extras (json, objects),
-- and the keys, modes and ttls of their dedupe rules; the instant, and whether it may notify (null: without looking for
-- listeners).
-- Returns a letter for each job (c created, f found, x conflict, s skipped, d deduplicated), and behind them, after a space
-- each, the ids of the jobs that were found for those that were deduplicated; and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.add(
    queues text[], numbers integer[], bundles integer[], ids text[], names text[], datas text[], options text[],
    priorities integer[], lifos boolean[], delays bigint[], dues bigint[], tags text[], flow text,
    extras text[], keys text[], modes text[], ttls bigint[], at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT verdicts text, OUT wakes text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    instant bigint := ropeway.clock(at);
    most integer := cardinality(ids);
    queue_ids integer[];
    queue_of integer[];
    seqs bigint[];
    news text[];
    letters text[];
    added integer;
    -- For each job the position of its parents among all sets of parents, and whether it has children; null: none does.
    sets integer[];
    are_parents boolean[];
    set_parents text[];
    set_families text[];
    has_known boolean := false;
    kin record;
    relations json;
    start_bys bigint[];
    -- For each job that is deduplicated, the one that holds its key; and what becomes of such jobs.
    holders text[];
    done ropeway.effects;
    taken record;
BEGIN
    IF most = 1 AND flow IS NULL THEN
        IF extras IS NULL THEN
            wakes := ropeway.add_single(
                queues[1], ids[1], names[1], datas[1], options[1], priorities[1], lifos[1], delays[1], dues[1], tags[1],
                NULL, NULL, instant, may_wake
            );
            verdicts := 'c';
        ELSE
            taken := ropeway.add_with_extras(
                queues[1], ids[1], names[1], datas[1], options[1], priorities[1], lifos[1], delays[1], dues[1], tags[1],
                extras[1], keys[1], modes[1], ttls[1], instant, may_wake
            );
            verdicts := taken.verdicts;
            wakes := taken.wakes;
        END IF;
        IF wakes IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    queue_ids := ARRAY(SELECT ropeway.queue_id(given.name) FROM unnest(queues) AS given (name));
    done.queues := '{}';
    done.steps := '{}';
    seqs := ARRAY(SELECT nextval('ropeway.job_seq') FROM generate_series(1, most));
    IF flow IS NOT NULL THEN
        relations := flow;
        sets := ropeway.texts_of_json(relations -> 'sets')::integer[];
        are_parents := ropeway.texts_of_json(relations -> 'are_parents')::boolean[];
        kin := ropeway.flow_parents(relations, sets, queue_ids, seqs, numbers, ids);
        set_parents := kin.parents;
        set_families := kin.families;
        has_known := kin.has_known;
    END IF;
    -- Nearly always every id is new. In the order of their ids, so that two calls never wait for each other.
    INSERT INTO ropeway.job (
        ord, created_at, queue, priority, id, name, options, data, tags, parents, families, family, extras
    )
    SELECT
        CASE WHEN given.lifo THEN -given.seq ELSE given.seq END, instant, queue_ids[coalesce(given.number, 1)],
        coalesce(given.priority, 0), given.id, given.name, coalesce(given.options, '{}'), given.data,
        CASE WHEN given.tags IS NOT NULL THEN ropeway.texts_of_json(given.tags::json) END,
        set_parents[given.set], set_families[given.set]::bigint[], CASE WHEN given.is_parent THEN given.seq END, given.extras
    FROM unnest(seqs, numbers, ids, names, datas, options, priorities, lifos, tags, sets, are_parents, extras)
        AS given (seq, number, id, name, data, options, priority, lifo, tags, set, is_parent, extras)
    ORDER BY given.id COLLATE "C"
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added < most OR has_known OR flow IS NOT NULL OR keys IS NOT NULL THEN
        queue_of := ARRAY(SELECT queue_ids[coalesce(numbers[n], 1)] FROM generate_series(1, most) AS n);
    END IF;
    IF added < most OR has_known THEN
        WITH gone AS (
            DELETE FROM ropeway.job AS j
            WHERE j.queue = ANY (queue_ids) AND j.id = ANY (ids) AND abs(j.ord) = ANY (seqs)
            RETURNING j.queue, j.id
        )
        SELECT array_agg(gone.queue || ':' || gone.id) INTO news FROM gone;
        taken := ropeway.add_one_by_one(
            news, seqs, queue_of, bundles, ids, names, datas, options, priorities, lifos, tags, delays, dues, relations,
            queue_ids, extras, keys, modes, ttls, holders, done, instant
        );
        letters := taken.verdicts;
    ELSIF keys IS NOT NULL THEN
        taken := ropeway.take_keys(
            array_fill('c'::text, ARRAY[most]), 1, most, queue_of, seqs, ids, names, datas, priorities, lifos, delays, dues,
            extras, keys, modes, ttls, relations, sets, are_parents, holders, done, instant
        );
        letters := taken.letters;
    END IF;
    IF letters IS NOT NULL THEN
        delays := taken.delays;
        dues := taken.dues;
        holders := taken.holders;
        done := taken.done;
    END IF;
    IF flow IS NOT NULL AND added = most AND NOT has_known THEN
        PERFORM ropeway.add_families(
            relations, queue_ids,
            CASE WHEN letters IS NULL THEN seqs ELSE ARRAY(
                SELECT CASE WHEN letters[n] IN ('c', 'p') THEN seqs[n] END FROM generate_series(1, most) AS n
            ) END,
            queue_of, ids, delays, dues, 1
        );
    END IF;

    IF extras IS NOT NULL THEN
        start_bys := ARRAY(SELECT ropeway.start_by(each.extras, instant) FROM unnest(extras) AS each (extras));
        UPDATE ropeway.queue AS q SET has_deadlines = true
        WHERE q.id = ANY (queue_ids) AND NOT q.has_deadlines AND start_bys <> array_fill(NULL::bigint, ARRAY[most]);
    END IF;
    INSERT INTO ropeway.waiting (ord, queue, priority, id, name, has_ties, start_by)
    SELECT
        CASE WHEN given.lifo THEN -given.seq ELSE given.seq END, queue_ids[coalesce(given.number, 1)],
        coalesce(given.priority, 0), given.id, given.name, given.set > 0 OR given.extras IS NOT NULL, given.start_by
    FROM unnest(seqs, numbers, ids, names, priorities, lifos, delays, dues, letters, sets, are_parents, extras, start_bys)
        AS given (seq, number, id, name, priority, lifo, delay, due_at, letter, set, is_parent, extras, start_by)
    WHERE coalesce(given.letter, 'c') = 'c' AND coalesce(given.delay, 0) <= 0 AND coalesce(given.due_at, 0) <= instant
        AND given.is_parent IS NOT TRUE;

    IF delays IS NOT NULL OR dues IS NOT NULL OR flow IS NOT NULL THEN
        -- The delay of a parent begins when its children have ended.
        INSERT INTO ropeway.later (ord, due_at, queue, priority, id, name, has_ties, start_by)
        SELECT
            CASE WHEN given.lifo THEN -given.seq ELSE given.seq END,
            CASE
                WHEN given.is_parent THEN NULL
                ELSE least(CASE WHEN given.delay > 0 THEN instant + given.delay ELSE given.due_at END, {{LAST_INSTANT}})
            END,
            queue_ids[coalesce(given.number, 1)], coalesce(given.priority, 0), given.id, given.name,
            given.set > 0 OR given.extras IS NOT NULL, given.start_by
        FROM unnest(seqs, numbers, ids, names, priorities, lifos, delays, dues, letters, sets, are_parents, extras, start_bys)
            AS given (seq, number, id, name, priority, lifo, delay, due_at, letter, set, is_parent, extras, start_by)
        WHERE coalesce(given.letter, 'c') = 'c' AND (given.is_parent OR given.delay > 0 OR given.due_at > instant);
    END IF;

    INSERT INTO ropeway.step (at, queue, events, waiting, waiting_children, delayed, metric_added, entries)
    SELECT
        instant, queue_ids[per_queue.number], (per_queue.added * {{EVENTS_OF_ADD}}) + per_queue.found,
        nullif(per_queue.added - per_queue.delayed - per_queue.parents, 0), nullif(per_queue.parents, 0),
        nullif(per_queue.delayed, 0), nullif(per_queue.added, 0),
        concat_ws(
            ',',
            '["{{ADD}}",' || instant || ',"waiting-children",[' || per_queue.closed || '],null]',
            '["{{ADD}}",' || instant || ',"waiting",[' || per_queue.lined || '],null]',
            '["{{ADD}}",' || instant || ',"delayed",[' || per_queue.later || '],null]',
            '["{{DUPLICATED}}",' || instant || ',null,[' || per_queue.known || '],null]'
        )
    FROM (
        SELECT
            coalesce(given.number, 1) AS number,
            count(*) FILTER (WHERE given.letter IS DISTINCT FROM 'f') AS added,
            count(*) FILTER (WHERE given.letter IS DISTINCT FROM 'f' AND given.due_at IS NOT NULL) AS delayed,
            count(*) FILTER (WHERE given.letter IS DISTINCT FROM 'f' AND given.is_parent) AS parents,
            count(*) FILTER (WHERE given.letter = 'f') AS found,
            string_agg('["' || given.id || '",{"name":' || to_json(given.name) || '}]', ',' ORDER BY given.n)
                FILTER (WHERE given.letter IS DISTINCT FROM 'f' AND given.is_parent) AS closed,
            string_agg('["' || given.id || '",{"name":' || to_json(given.name) || '}]', ',' ORDER BY given.n)
                FILTER (
                    WHERE given.letter IS DISTINCT FROM 'f' AND given.due_at IS NULL AND given.is_parent IS NOT TRUE
                ) AS lined,
            string_agg(
                '["' || given.id || '",{"name":' || to_json(given.name) || ',"due_at":' || given.due_at || '}]', ','
                ORDER BY given.n
            ) FILTER (WHERE given.letter IS DISTINCT FROM 'f' AND given.due_at IS NOT NULL) AS later,
            string_agg('["' || given.id || '",null]', ',' ORDER BY given.n)
                FILTER (WHERE given.letter = 'f') AS known
        FROM (
            SELECT
                each.n, each.number, each.id, each.name, each.letter, each.is_parent,
                CASE
                    WHEN each.is_parent THEN NULL
                    WHEN each.delay > 0 THEN least(instant + each.delay, {{LAST_INSTANT}})
                    WHEN each.due_at > instant THEN each.due_at
                END AS due_at
            FROM unnest(numbers, ids, names, delays, dues, letters, are_parents)
                WITH ORDINALITY AS each (number, id, name, delay, due_at, letter, is_parent, n)
            WHERE coalesce(each.letter, 'c') IN ('c', 'p', 'f')
        ) AS given
        GROUP BY coalesce(given.number, 1)
    ) AS per_queue;

    verdicts := CASE
        WHEN letters IS NULL THEN repeat('c', most)
        ELSE concat_ws(' ', replace(array_to_string(letters, ''), 'p', 'c'), array_to_string(holders, ' '))
    END;
    wakes := array_remove(
        ARRAY(
            SELECT ropeway.wake(queue, topic, may_wake)
            FROM unnest(queue_ids) AS queue, unnest(ARRAY['jobs', 'events']) AS topic
        ),
        NULL
    );
    IF done.queues <> '{}' THEN
        wakes := wakes || ropeway.write_effects(done, instant, may_wake);
    END IF;
END
$$;
