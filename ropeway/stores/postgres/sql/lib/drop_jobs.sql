-- Removes jobs: the only function that does. What has to happen when a job is removed belongs here.
-- Takes the step, the queue, the ids of jobs whose state's row is deleted and uncounted already, the state of each, the
-- sequence numbers of those that may have failures or log lines, the instant, and whether the call has locked no family
-- yet, so that it may wait for them.
-- Returns the step; news of those that were not final and have ties, which the caller has to pass to `conclude` when it has
-- locked all its jobs (null: none has); and the least of the families that are locked.
CREATE OR REPLACE FUNCTION ropeway.drop_jobs(
    INOUT s ropeway.step, queue_id integer, ids text[], states ropeway.state[], seqs bigint[], instant bigint,
    may_wait boolean DEFAULT false, OUT news ropeway.news[], OUT lowest bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    amount CONSTANT integer := cardinality(ids);
    listed text;
    own bigint[];
    locked bigint[];
    marked bigint[];
BEGIN
    IF ids IS NULL OR amount = 0 THEN
        RETURN;
    END IF;
    WITH gone AS (
        DELETE FROM ropeway.job AS j WHERE j.queue = queue_id AND j.id = ANY (ids)
        RETURNING j.id, j.families, j.family, j.extras, j.older_marks
    )
    SELECT
        string_agg('["' || job.id || '",{"prev":"' || job.state || '"}]', ','),
        (
            SELECT array_agg(
                ROW(
                    queue_id, gone.id, '{{CHILD_REMOVED}}', NULL, NULL, gone.families, NULL,
                    gone.extras::json -> 'dedupe' ->> 'key', NULL
                )::ropeway.news
            )
            FROM gone WHERE gone.families IS NOT NULL OR gone.extras IS NOT NULL
        ),
        (SELECT array_agg(gone.family ORDER BY gone.family DESC) FROM gone WHERE gone.family IS NOT NULL),
        (SELECT array_agg(gone.older_marks) FROM gone WHERE gone.older_marks IS NOT NULL)
    INTO listed, news, own, marked
    FROM unnest(ids, states) AS job (id, state);
    IF news IS NOT NULL THEN
        news := (
            SELECT array_agg(ROW(given.*)::ropeway.news ORDER BY given.id)
            FROM unnest(news) AS given JOIN unnest(ids, states) AS job (id, state) ON job.id = given.id
            WHERE job.state NOT IN ({{FINAL}}) AND (given.families IS NOT NULL OR given.key IS NOT NULL)
        );
    END IF;
    IF own IS NOT NULL THEN
        IF may_wait THEN
            -- With those of the news, in the order that `conclude` keeps to.
            locked := own || ARRAY(SELECT unnest(given.families) FROM unnest(news) AS given);
            PERFORM FROM ropeway.family AS f WHERE f.id = ANY (locked) ORDER BY f.id DESC FOR UPDATE;
            lowest := (SELECT min(each.family) FROM unnest(locked) AS each (family));
        ELSE
            PERFORM FROM ropeway.family AS f WHERE f.id = ANY (own) FOR UPDATE NOWAIT;
        END IF;
        DELETE FROM ropeway.link AS l WHERE l.family = ANY (own);
        DELETE FROM ropeway.family AS f WHERE f.id = ANY (own);
    END IF;
    IF marked IS NOT NULL THEN
        DELETE FROM ropeway.mark AS m WHERE m.number = ANY (marked);
    END IF;
    IF cardinality(seqs) > 0 THEN
        DELETE FROM ropeway.failure AS f WHERE f.seq = ANY (seqs);
        DELETE FROM ropeway.log_line AS l WHERE l.seq = ANY (seqs);
    END IF;
    s.entries := concat_ws(',', s.entries, ropeway.entry('{{REMOVE}}', instant, NULL, listed));
    s.events := coalesce(s.events, 0) + amount;
    s.metric_removed := coalesce(s.metric_removed, 0) + amount;
END
$$;
