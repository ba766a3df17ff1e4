-- Adds, claims and settles a job that nobody sees, and takes all of it back. A session that did so has read the functions
-- and made their plans, for which the first jobs of a worker would wait otherwise.
-- Takes nothing.
-- Returns 'done', or what went wrong: that is not worth an error.
CREATE OR REPLACE FUNCTION ropeway.rehearse() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    -- Not a name that a queue may have.
    stage CONSTANT text := ' ';
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    BEGIN
        PERFORM ropeway.add(
            ARRAY[stage], NULL, NULL, ARRAY['1'], ARRAY[''], ARRAY[''], NULL, NULL, NULL, NULL, NULL, NULL, NULL, false
        );
        PERFORM ropeway.claim(stage, '1', '', 1, 1, NULL, false, true, NULL, NULL, NULL, NULL, false);
        PERFORM ropeway.settle(
            stage, ARRAY['1'], ARRAY['1'], NULL, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL, '2', '', 1, 1, NULL, false, true, NULL, NULL, NULL, NULL, false
        );
        RAISE EXCEPTION 'done';
    EXCEPTION
        WHEN OTHERS THEN
            RETURN sqlerrm;
    END;
END
$$;
