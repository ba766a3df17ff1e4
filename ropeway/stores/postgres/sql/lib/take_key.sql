-- Takes a dedupe key for a new job, or does what the table of actions says if it is held.
-- Takes the effects of the call, the queue, the new job's id, name and data, its key, mode and ttl, and the instant.
-- Returns the effects, the id of the job that is found instead (null: the new one is stored), and whether the new one has to
-- wait for the end of the job that holds the key.
CREATE OR REPLACE FUNCTION ropeway.take_key(
    INOUT done ropeway.effects, queue_id integer, job_id text, job_name text, data text, wanted text, mode text, ttl bigint,
    instant bigint, OUT found_id text, OUT follows boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    held_until CONSTANT bigint := CASE WHEN mode = '{{MODE_THROTTLE}}' THEN instant + ttl END;
    only_finds CONSTANT boolean := mode IN ({{FINDING_MODES}});
    hold ropeway.held_key;
    is_over boolean;
    is_started boolean;
    action text;
    after record;
BEGIN
    follows := false;
    LOOP
        IF NOT only_finds THEN
            PERFORM ropeway.lock_keys(queue_id, ARRAY[wanted]);
        END IF;
        SELECT k.* INTO hold FROM ropeway.held_key AS k WHERE k.queue = queue_id AND k.key = wanted;
        IF NOT FOUND THEN
            -- Waits for a call that takes it at the same time.
            INSERT INTO ropeway.held_key (until, queue, key, holder) VALUES (held_until, queue_id, wanted, job_id)
            ON CONFLICT DO NOTHING;
            IF FOUND THEN
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        is_over := coalesce(hold.until <= instant, false);
        IF is_over THEN
            action := '{{ACTION_TAKE}}';
        ELSIF only_finds THEN
            action := '{{ACTION_FIND}}';
        ELSE
            action := ropeway.dedupe_action(mode, coalesce(
                (SELECT p.state::text FROM ropeway.whole_job AS p WHERE p.queue = queue_id AND p.id = hold.holder), 'completed'
            ));
        END IF;
        -- One that was promoted by hand may be active: then the new job waits for its end instead.
        is_started := action = '{{ACTION_FOLLOW}}' AND hold.next IS NOT NULL
            AND EXISTS (SELECT FROM ropeway.active AS a WHERE a.queue = queue_id AND a.id = hold.next);
        IF action = '{{ACTION_FOLLOW}}' AND (hold.next IS NULL OR is_started) THEN
            -- From now on it is not held for a time: it passes on when its holder ends.
            UPDATE ropeway.held_key AS k
            SET next = job_id, until = NULL, holder = CASE WHEN is_started THEN k.next ELSE k.holder END
            WHERE k.queue = queue_id AND k.key = wanted;
            follows := true;
            RETURN;
        ELSIF action NOT IN ('{{ACTION_TAKE}}', '{{ACTION_REPLACE}}') THEN
            found_id := CASE action WHEN '{{ACTION_FOLLOW}}' THEN hold.next ELSE hold.holder END;
            IF action <> '{{ACTION_FIND}}' THEN
                PERFORM ropeway.refresh(
                    queue_id, found_id, job_name, data, CASE action WHEN '{{ACTION_POSTPONE}}' THEN instant + ttl END
                );
            END IF;
            RETURN;
        END IF;
        -- Of one that is over, only the key is locked, and only now.
        UPDATE ropeway.held_key AS k SET holder = job_id, until = held_until, next = NULL
        WHERE k.queue = queue_id AND k.key = wanted AND k.holder = hold.holder AND k.next IS NOT DISTINCT FROM hold.next
            AND k.until IS NOT DISTINCT FROM hold.until;
        CONTINUE WHEN NOT FOUND;
        IF action = '{{ACTION_REPLACE}}' THEN
            done := ropeway.supersede(done, queue_id, array_remove(ARRAY[hold.next, hold.holder], NULL), job_id, instant);
        ELSIF hold.next IS NOT NULL THEN
            -- The key passes to the new job, so nothing else would let this one go on.
            after := ropeway.start_next(done.queues, done.steps, queue_id, hold.next, instant);
            done.queues := after.queues;
            done.steps := after.steps;
        END IF;
        RETURN;
    END LOOP;
END
$$;
