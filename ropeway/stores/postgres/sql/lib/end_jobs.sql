-- Makes jobs final: the only function that does. What has to happen when a job ends belongs here.
-- Takes the step, the queue, the move, the final state, and the age and count of retention. Then the jobs: either ids
-- (each once, in order) and tokens, of which those end that are active under their token; or jobs as they are to be
-- stored, whose state's row is deleted already. Then their results (null: none has one), event details of each (json;
-- null: none) and of all, and the instant.
-- Returns the step, the ids of those that ended, and news of those that have ties, which the caller has to pass to
-- `conclude` when it has locked all its jobs (null: none has).
CREATE OR REPLACE FUNCTION ropeway.end_jobs(
    INOUT s ropeway.step, queue_id integer, move text, entered ropeway.state, age bigint, keeps bigint, held_ids text[],
    tokens text[], jobs ropeway.active[], results text[], details text[], common text, instant bigint, OUT ended text[],
    OUT news ropeway.news[]
)
LANGUAGE plpgsql AS $$
DECLARE
    is_kept CONSTANT boolean := (age = 0 OR keeps = 0) IS NOT TRUE;
    expires_at CONSTANT bigint := ropeway.expiry(instant, age, keeps);
    amount integer;
    listed text;
    pasts bigint[];
    dropped record;
BEGIN
    IF held_ids IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM ropeway.active AS a
            USING (
                -- LATERAL and LIMIT: each by its key, in the order of ids, whatever the statistics of the table.
                SELECT mine.row_ctid, given.result
                FROM unnest(held_ids, tokens, results) AS given (id, token, result)
                CROSS JOIN LATERAL (
                    SELECT held.ctid AS row_ctid FROM ropeway.active AS held
                    WHERE held.queue = queue_id AND held.id = given.id AND held.token = given.token
                    LIMIT 1
                ) AS mine
            ) AS ended
            WHERE a.ctid = ended.row_ctid
            RETURNING a.*, ended.result
        ), kept AS (
            INSERT INTO ropeway.finished (seq, finished_at, expires_at, state, queue, result, reason, {{CARRIED}})
            SELECT
                abs(gone.ord), instant, expires_at, entered, queue_id, gone.result,
                CASE WHEN entered <> 'completed' THEN gone.reason END, {{CARRIED_OF_GONE}}
            FROM gone
            WHERE is_kept
        )
        SELECT
            count(*), array_agg(gone.id),
            string_agg(
                '["' || gone.id || '",' || coalesce('{"result":' || nullif(gone.result, 'null') || '}', 'null') || ']', ','
            ),
            array_agg(abs(gone.ord)) FILTER (
                WHERE NOT is_kept AND (gone.attempts_started > 1 OR gone.attempts_made > 0 OR gone.logged > 0)
            ),
            array_agg(
                ROW(queue_id, gone.id, entered, gone.result, gone.reason, NULL, gone.attempts_made, NULL, NULL)::ropeway.news
            ) FILTER (WHERE gone.has_ties)
        INTO amount, ended, listed, pasts, news
        FROM gone;
        s.active := coalesce(s.active, 0) - amount;
    ELSE
        WITH kept AS (
            INSERT INTO ropeway.finished (seq, finished_at, expires_at, state, queue, result, reason, {{CARRIED}})
            SELECT
                abs(job.ord), instant, expires_at, entered, queue_id, results[job.ordinality],
                CASE WHEN entered <> 'completed' THEN job.reason END, {{CARRIED_OF_JOB}}
            FROM unnest(jobs) WITH ORDINALITY AS job
            WHERE is_kept
        )
        SELECT
            count(*), array_agg(job.id),
            string_agg('["' || job.id || '",' || coalesce(details[job.ordinality], 'null') || ']', ','),
            array_agg(abs(job.ord)) FILTER (
                WHERE NOT is_kept AND (job.attempts_started > 1 OR job.attempts_made > 0 OR job.logged > 0)
            ),
            array_agg(
                ROW(
                    queue_id, job.id, entered, results[job.ordinality], job.reason, NULL, job.attempts_made, NULL, NULL
                )::ropeway.news
                ORDER BY job.ordinality
            ) FILTER (WHERE job.has_ties)
        INTO amount, ended, listed, pasts, news
        FROM unnest(jobs) WITH ORDINALITY AS job;
    END IF;
    IF amount = 0 THEN
        RETURN;
    END IF;
    s.entries := concat_ws(',', s.entries, ropeway.entry(move, instant, entered::text, listed, common));
    s.events := coalesce(s.events, 0) + amount * CASE move
        WHEN '{{GIVE_UP}}' THEN {{EVENTS_OF_GIVE_UP}} WHEN '{{EXPIRE}}' THEN {{EVENTS_OF_EXPIRE}} ELSE 1
    END;
    IF entered = 'completed' THEN
        s.completed := coalesce(s.completed, 0) + CASE WHEN is_kept THEN amount ELSE 0 END;
        s.metric_completed := coalesce(s.metric_completed, 0) + amount;
    ELSIF entered = 'failed' THEN
        s.failed := coalesce(s.failed, 0) + CASE WHEN is_kept THEN amount ELSE 0 END;
        s.metric_failed := coalesce(s.metric_failed, 0) + amount;
    ELSE
        s.cancelled := coalesce(s.cancelled, 0) + CASE WHEN is_kept THEN amount ELSE 0 END;
        s.metric_cancelled := coalesce(s.metric_cancelled, 0) + amount;
    END IF;
    IF news IS NOT NULL THEN
        news := ropeway.news_of(news, move, instant);
    END IF;
    IF NOT is_kept THEN
        dropped := ropeway.drop_jobs(s, queue_id, ended, array_fill(entered, ARRAY[amount]), pasts, instant);
        s := dropped.s;
    -- If many are kept, this is done only sometimes, and some more stay meanwhile.
    ELSIF keeps IS NOT NULL AND random() * greatest(keeps - 100, 1) <= 10 * amount THEN
        s := ropeway.trim_finished(s, queue_id, entered, keeps, instant);
    END IF;
END
$$;
