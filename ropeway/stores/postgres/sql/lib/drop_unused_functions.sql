-- Drops sets of functions that no process has used for long. A process that was idle so long installs its set again.
-- Takes how long, in milliseconds.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.drop_unused_functions(unused_for bigint DEFAULT {{FUNCTIONS_KEPT}}) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    old text;
    dropped regprocedure;
BEGIN
    FOR old IN SELECT f.digest FROM ropeway.function_set AS f WHERE f.used_at < ropeway.clock() - unused_for LOOP
        BEGIN
            FOR dropped IN
                SELECT p.oid FROM pg_proc AS p
                WHERE p.pronamespace = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = 'ropeway.job'::regclass)
                    AND right(p.proname, 9) = '_' || old
            LOOP
                EXECUTE 'DROP FUNCTION ' || dropped;
            END LOOP;
            DELETE FROM ropeway.function_set AS f WHERE f.digest = old;
        EXCEPTION
            WHEN insufficient_privilege THEN
                -- They belong to another user.
                NULL;
        END;
    END LOOP;
END
$$;
