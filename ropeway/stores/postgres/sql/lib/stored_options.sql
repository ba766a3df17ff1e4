-- Reads the options that matter when a job ends without its worker. Damaged options count as none.
-- Takes the options (json) and the defaults: attempts, stack traces, and the age and count of failed jobs.
-- Returns the four values.
CREATE OR REPLACE FUNCTION ropeway.stored_options(
    options text, defaults bigint[], OUT attempts bigint, OUT stack_traces bigint, OUT age bigint, OUT count bigint
)
LANGUAGE plpgsql AS $$
DECLARE
    said jsonb;
BEGIN
    attempts := defaults[1];
    stack_traces := defaults[2];
    age := defaults[3];
    count := defaults[4];
    IF options = '{}' THEN
        RETURN;
    END IF;
    BEGIN
        said := options::jsonb;
        attempts := coalesce((said ->> 'attempts')::bigint, attempts);
        stack_traces := coalesce((said ->> 'stack_traces')::bigint, stack_traces);
        IF jsonb_typeof(said -> 'keep_failed') = 'object' THEN
            age := (said -> 'keep_failed' ->> 'age')::bigint;
            count := (said -> 'keep_failed' ->> 'count')::bigint;
        END IF;
    EXCEPTION WHEN data_exception THEN
        attempts := defaults[1];
        stack_traces := defaults[2];
        age := defaults[3];
        count := defaults[4];
    END;
END
$$;
