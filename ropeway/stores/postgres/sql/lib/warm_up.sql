-- Adds, claims and settles a job and rolls all of it back, so that this session has loaded the functions and their
-- plans before the first real job.
-- Takes nothing.
-- Returns 'done', or what went wrong, which is not worth an error.
CREATE OR REPLACE FUNCTION ropeway.warm_up() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    -- Not a name that a queue may have.
    stage CONSTANT text := ' ';
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    BEGIN
        PERFORM ropeway.add(
            ARRAY[stage], NULL, NULL, ARRAY['1'], ARRAY[''], ARRAY[''], NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL, NULL, NULL, NULL, NULL, false
        );
        PERFORM ropeway.claim(stage, '1', '', 1, 1, NULL, false, true, NULL, NULL, NULL, NULL, false);
        PERFORM ropeway.settle(
            stage, ARRAY['1'], ARRAY['1'], NULL, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL, '2', '', 1, 1, NULL, false, true, NULL, NULL, NULL, may_wake => false
        );
        RAISE EXCEPTION 'done';
    EXCEPTION
        WHEN OTHERS THEN
            RETURN sqlerrm;
    END;
END
$$;
