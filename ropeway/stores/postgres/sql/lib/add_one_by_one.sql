-- Adds bundles in order, when some of their ids exist.
-- Takes the queue ids and ids that are new, and the parameters of `add`, with a sequence number, a queue id and a
-- bundle for each job; the ids of the queues that the flow names, and what `take_keys` takes.
-- Returns a letter for each job: c or p created (see `take_keys`), f found, x conflict, s skipped, d deduplicated; and what
-- `take_keys` returns.
CREATE OR REPLACE FUNCTION ropeway.add_one_by_one(
    news text[], seqs bigint[], queue_ids integer[], bundles integer[], ids text[], names text[], datas text[], options text[],
    priorities integer[], lifos boolean[], tags text[], INOUT delays bigint[], INOUT dues bigint[], flow json,
    flow_queues integer[], extras text[], keys text[], modes text[], ttls bigint[], INOUT holders text[],
    INOUT done ropeway.effects, instant bigint, OUT verdicts text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    -- The first job of the bundle, and whether any of it conflicts.
    first integer := 1;
    has_conflict boolean := false;
    -- The families of its new parents.
    added bigint[] := '{}';
    known record;
    sets CONSTANT integer[] := ropeway.texts_of_json(flow -> 'sets')::integer[];
    are_parents CONSTANT boolean[] := ropeway.texts_of_json(flow -> 'are_parents')::boolean[];
    -- Taken out of the flow once: to look for something in it takes as long as it is large. The parents of each set, as they
    -- are stored, and as `known_child` takes them; and for each job whether its id was new.
    set_parents CONSTANT text[] := ropeway.texts_of_json(flow -> 'parents');
    set_parents_at CONSTANT text[] := ARRAY(
        SELECT json_agg(given.one ORDER BY given.n)::text
        FROM json_array_elements(flow -> 'parents_at') WITH ORDINALITY AS given (one, n)
        GROUP BY (given.one ->> 0)::integer
        ORDER BY (given.one ->> 0)::integer
    );
    are_new CONSTANT boolean[] := ARRAY(
        SELECT queue_ids[n] || ':' || ids[n] IN (SELECT unnest(news)) FROM generate_subscripts(ids, 1) AS n ORDER BY n
    );
    kin record;
    families bigint[];
    is_new boolean;
    taken record;
BEGIN
    verdicts := '{}';
    FOR n IN 1 .. cardinality(ids) LOOP
        families := NULL;
        is_new := true;
        IF sets[n] IS NOT NULL THEN
            kin := ropeway.known_child(set_parents_at[sets[n]]::json, flow_queues, added, queue_ids[n], ids[n]);
            families := kin.families;
            is_new := kin.is_new;
        END IF;
        -- Only those: ids that were removed since may be added by a call that waits for this one.
        INSERT INTO ropeway.job (
            ord, created_at, queue, priority, id, name, options, data, tags, parents, families, family, extras
        )
        SELECT
            CASE WHEN lifos[n] THEN -seqs[n] ELSE seqs[n] END, instant, queue_ids[n], coalesce(priorities[n], 0),
            ids[n], names[n], coalesce(options[n], '{}'), datas[n], ropeway.texts_of_json(tags[n]::json),
            set_parents[sets[n]], families, CASE WHEN are_parents[n] THEN seqs[n] END, extras[n]
        WHERE are_new[n] AND is_new
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            verdicts[n] := 'c';
            IF are_parents[n] THEN
                added := added || seqs[n];
            END IF;
        ELSIF sets[n] IS NOT NULL THEN
            -- No other job may have the id of a new child.
            verdicts[n] := CASE
                WHEN NOT kin.is_known THEN 'x'
                WHEN EXISTS (SELECT FROM ropeway.job AS j WHERE j.queue = queue_ids[n] AND j.id = ids[n]) THEN 'f'
                ELSE 'own'
            END;
            has_conflict := has_conflict OR NOT kin.is_known;
        ELSE
            SELECT job.name, job.data, abs(job.ord) AS seq INTO known
            FROM ropeway.job WHERE job.queue = queue_ids[n] AND job.id = ids[n];
            IF NOT FOUND THEN
                -- Removed since: the caller tries again.
                RAISE serialization_failure USING MESSAGE = 'job ' || ids[n] || ' was removed meanwhile';
            ELSIF known.name <> names[n] OR known.data <> datas[n] THEN
                verdicts[n] := 'x';
                has_conflict := true;
            ELSE
                -- What repeats a job of its own bundle is not there if the bundle is not stored.
                verdicts[n] := CASE WHEN known.seq >= seqs[first] THEN 'own' ELSE 'f' END;
            END IF;
        END IF;
        IF n < cardinality(ids) AND bundles[n + 1] IS NOT DISTINCT FROM bundles[n] THEN
            CONTINUE;
        END IF;
        IF has_conflict THEN
            DELETE FROM ropeway.job AS j
            WHERE j.queue = ANY (queue_ids) AND j.id = ANY (ids[first:n]) AND abs(j.ord) = ANY (seqs[first:n]);
        ELSE
            IF keys IS NOT NULL THEN
                taken := ropeway.take_keys(
                    verdicts, first, n, queue_ids, seqs, ids, names, datas, priorities, lifos, delays, dues, extras, keys, modes,
                    ttls, flow, sets, are_parents, holders, done, instant
                );
                verdicts := taken.letters;
                delays := taken.delays;
                dues := taken.dues;
                holders := taken.holders;
                done := taken.done;
            END IF;
            IF flow IS NOT NULL THEN
                PERFORM ropeway.add_families(
                    flow, flow_queues,
                    ARRAY(
                        SELECT CASE WHEN verdicts[mine] IN ('c', 'p') THEN seqs[mine] END FROM generate_series(1, n) AS mine
                    ),
                    queue_ids, ids, delays, dues, first
                );
            END IF;
        END IF;
        FOR mine IN first .. n LOOP
            verdicts[mine] := CASE
                WHEN has_conflict AND verdicts[mine] IN ('c', 'own') THEN 's'
                WHEN verdicts[mine] = 'own' THEN 'f'
                ELSE verdicts[mine]
            END;
        END LOOP;
        first := n + 1;
        has_conflict := false;
        added := '{}';
    END LOOP;
END
$$;
