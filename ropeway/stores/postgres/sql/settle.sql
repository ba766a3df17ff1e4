-- Records how attempts ended, and claims the next jobs.
-- Takes the queue; of those that completed ids (each once, in order), tokens, results (null: none has one), and how long they are
-- kept; of the others what `settle_others` takes, or nulls; the request as `claim` takes it (no token: none); the
-- instant, and whether it may wake listeners.
-- Returns two letters for each that completed (the verdict and the state before), or null if all were active; letters for each of
-- the others; and what `claim` returns.
CREATE OR REPLACE FUNCTION ropeway.settle(
    queue_name text, done_ids text[], done_tokens text[], done_results text[], done_age bigint, done_count bigint,
    other_ids text[], other_tokens text[], moves text[], results text[], reasons text[], traces text[], delays bigint[],
    ages bigint[], counts bigint[], exhausted boolean[], stack_traces integer[],
    token text, worker text, most integer, lock bigint, names text[], repeats boolean,
    at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL,
    OUT done_letters text, OUT other_letters text, OUT instant bigint, OUT again_at bigint, OUT ids text[], OUT job_names text[], OUT datas text[],
    OUT options text[], OUT priorities integer[], OUT ords bigint[], OUT created bigint[], OUT pasts text[],
    OUT held bigint[], OUT wakes text[]
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    s ropeway.step;
    queue ropeway.queue;
    expires_at bigint;
    completed integer := 0;
    jobs text;
    completed_ids text[];
    answers text[];
    other record;
    taken record;
    brings_work boolean := false;
BEGIN
    instant := ropeway.clock(at);
    SELECT q.* INTO queue FROM ropeway.queue AS q WHERE q.name = queue_name;
    IF NOT FOUND THEN
        done_letters := repeat('m-', cardinality(done_ids));
        other_letters := repeat('m-', cardinality(other_ids));
        RETURN;
    END IF;

    IF cardinality(done_ids) > 0 THEN
        expires_at := least(coalesce(instant + done_age, 253402300799999), 253402300799999);
        WITH gone AS (
            DELETE FROM ropeway.active AS a
            USING (
                SELECT mine.ctid AS spot, given.result
                FROM unnest(done_ids, done_tokens, done_results) AS given (id, token, result)
                JOIN ropeway.active AS mine
                    ON mine.queue = queue.id AND mine.id = given.id AND mine.token = given.token
                ORDER BY mine.id
                FOR UPDATE OF mine
            ) AS ended
            WHERE a.ctid = ended.spot
            RETURNING a.*, ended.result
        ), kept AS (
            INSERT INTO ropeway.finished (
                seq, finished_at, expires_at, state, queue, attempts_made, attempts_started, stalled_count, logged,
                id, name, started_at, renewed_at, token, worker, progress, result
            )
            SELECT
                abs(gone.ord), instant, expires_at, 'completed', gone.queue, gone.attempts_made,
                gone.attempts_started, gone.stalled_count, gone.logged, gone.id, gone.name, gone.started_at,
                gone.renewed_at, gone.token, gone.worker, gone.progress, gone.result
            FROM gone
        )
        SELECT
            count(*), array_agg(gone.id),
            string_agg(
                '["' || gone.id || '",' || coalesce('{"result":' || nullif(gone.result, 'null') || '}', 'null') || ']',
                ','
            )
        INTO completed, completed_ids, jobs
        FROM gone;
        IF completed > 0 THEN
            s := ropeway.told(s, ropeway.entry('complete', instant, 'completed', jobs), completed);
            s := ropeway.moved(s, 'active', 'completed', completed);
            s.metric_completed := completed;
        END IF;
        IF completed < cardinality(done_ids) THEN
            answers := ARRAY(
                SELECT CASE
                    WHEN given.id = ANY (completed_ids) THEN 'da'
                    ELSE ropeway.standing(queue.id, given.id, given.token, '{completed}')
                END
                FROM unnest(done_ids, done_tokens) AS given (id, token)
            );
            done_letters := array_to_string(answers, '');
            SELECT count(*), string_agg('["' || given.id || '",{"move":"complete"}]', ',') INTO other
            FROM unnest(done_ids, answers) AS given (id, answer)
            WHERE given.answer LIKE 'l%';
            IF other.count > 0 THEN
                s := ropeway.told(s, ropeway.entry('lock-lost', instant, NULL, other.string_agg), other.count::integer);
            END IF;
        END IF;
    END IF;

    other := NULL;
    IF cardinality(other_ids) > 0 THEN
        SELECT o.* INTO other FROM ropeway.settle_others(
            s, queue.id, other_ids, other_tokens, moves, results, reasons, traces, delays, ages, counts, exhausted,
            stack_traces, instant
        ) AS o;
        s := other.s;
        other_letters := other.letters;
        brings_work := other.back > 0;
        IF cardinality(other.failed) > 0 THEN
            s := ropeway.retain(
                s, queue.id, 'failed', other.failed_at_once, other.failed_count, cardinality(other.failed), instant
            );
        END IF;
        IF cardinality(other.completed) > 0 THEN
            s := ropeway.retain(
                s, queue.id, 'completed', other.completed_at_once, other.completed_count,
                cardinality(other.completed), instant
            );
        END IF;
    END IF;
    IF completed > 0 THEN
        IF done_age = 0 OR done_count = 0 THEN
            s := ropeway.retain(s, queue.id, 'completed', completed_ids, NULL, completed, instant);
        ELSE
            s := ropeway.retain(s, queue.id, 'completed', NULL, done_count, completed, instant);
        END IF;
    END IF;
    brings_work := brings_work OR (queue.max_active IS NOT NULL AND s.active < 0);

    IF token IS NOT NULL THEN
        SELECT t.* INTO taken FROM ropeway.take(s, queue, instant, token, worker, most, lock, names, repeats) AS t;
        s := taken.s;
        again_at := taken.again_at;
        ids := taken.ids;
        job_names := taken.job_names;
        datas := taken.datas;
        options := taken.options;
        priorities := taken.priorities;
        ords := taken.ords;
        created := taken.created;
        pasts := taken.pasts;
        held := taken.held;
    END IF;
    wakes := ropeway.write(s, queue.id, instant, brings_work, may_wake);
END
$$;
