-- Changes the progress or marks of jobs that are active under a token: what handlers do often, with few statements.
-- Takes the queue, ids (each once, in order), tokens, progresses and marks (see `write_held`); what the updates announce (see
-- `announce`); the instant, and whether it may notify.
-- Returns two letters for each (the verdict and the state), or null if all were held; and the wakes (see `wake`).
CREATE OR REPLACE FUNCTION ropeway.update_held(
    queue_name text, ids text[], tokens text[], progresses text[], marks text[], kinds text[], details text[],
    listed text[], positions text[], at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL, OUT letters text, OUT wakes text[]
)
LANGUAGE plpgsql
{{PLANNED_ONCE}} {{BY_INDEX}} {{IN_ORDER}} {{BY_KEY}}
AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
    queue_id integer;
    accepted boolean[];
BEGIN
    SELECT q.id INTO queue_id FROM ropeway.queue AS q WHERE q.name = queue_name;
    accepted := ropeway.write_held(queue_id, ids, tokens, progresses, marks, instant);
    IF accepted IS NOT NULL THEN
        letters := (
            SELECT string_agg(ropeway.answer_not_held(queue_id, given.id, given.token, NULL), '' ORDER BY given.n)
            FROM unnest(ids, tokens) WITH ORDINALITY AS given (id, token, n)
        );
    END IF;
    IF kinds IS NOT NULL THEN
        s := ropeway.announce(s, ids, kinds, details, listed, positions, accepted, instant);
        wakes := ropeway.write_step(s, queue_id, instant, false, may_wake);
    END IF;
END
$$;
