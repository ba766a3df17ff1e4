-- Adds bundles in order, when some of their ids exist.
-- Takes the queue ids and ids that are new, and the parameters of `add`, with a sequence number, a queue id and a
-- bundle for each job.
-- Returns a letter for each job: c created, f found, x conflict, s skipped.
CREATE OR REPLACE FUNCTION ropeway.add_one_by_one(
    news text[], seqs bigint[], queue_ids integer[], bundles integer[], ids text[], names text[], datas text[], options text[],
    priorities integer[], lifos boolean[], tags text[], instant bigint
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    verdicts text[] := '{}';
    -- The first job of the bundle, and whether any of it conflicts.
    first integer := 1;
    has_conflict boolean := false;
    known record;
BEGIN
    FOR n IN 1 .. cardinality(ids) LOOP
        -- Only those: ids that were removed since may be added by a call that waits for this one.
        INSERT INTO ropeway.job (ord, created_at, queue, priority, id, name, options, data, tags)
        SELECT
            CASE WHEN lifos[n] THEN -seqs[n] ELSE seqs[n] END, instant, queue_ids[n], coalesce(priorities[n], 0),
            ids[n], names[n], coalesce(options[n], '{}'), datas[n], ropeway.texts_of_json(tags[n]::json)
        WHERE queue_ids[n] || ':' || ids[n] = ANY (news)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            verdicts[n] := 'c';
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
    END LOOP;
    RETURN verdicts;
END
$$;
