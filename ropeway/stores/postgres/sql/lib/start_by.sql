-- The instant by which a new job has to be started: as `Extras.deadline` of job/extras.py.
-- Takes its extras (json), and the instant of its add.
-- Returns null if it never expires.
CREATE OR REPLACE FUNCTION ropeway.start_by(extras text, instant bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        -- Most extras say something else.
        WHEN extras NOT LIKE '%"start_%' THEN NULL
        WHEN extras::json -> 'start_within' IS NOT NULL
            THEN least(instant + (extras::json ->> 'start_within')::bigint, {{LAST_INSTANT}})
        ELSE (extras::json ->> 'start_by')::bigint
    END
$$;
