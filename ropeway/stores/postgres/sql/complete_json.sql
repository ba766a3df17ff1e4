-- Completes a job in a caller's transaction, through any driver. Until its commit, other calls on the job wait.
-- Takes JSON: the database, the queue, the job's id and token, the result, the age and count of its retention, the
-- jobs to add, and the marks to write and what to announce (see `settle`), if there is any.
-- Returns two letters (the verdict and the state before); or ! and the current database, if that is another one.
CREATE OR REPLACE FUNCTION ropeway.complete_json(given text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    call json := given;
    letters text;
BEGIN
    IF call ->> 'database' <> current_database() THEN
        RETURN '!' || current_database();
    END IF;
    SELECT settled.done_letters INTO letters FROM ropeway.settle(
        queue_name => call ->> 'queue',
        done_ids => ARRAY[call ->> 'id'],
        done_tokens => ARRAY[call ->> 'token'],
        done_results => CASE WHEN call ->> 'result' IS NOT NULL THEN ARRAY[call ->> 'result'] END,
        done_age => (call ->> 'age')::bigint,
        done_count => (call ->> 'count')::bigint,
        other_ids => NULL, other_tokens => NULL, moves => NULL, results => NULL, reasons => NULL, traces => NULL,
        delays => NULL, ages => NULL, counts => NULL, exhausted => NULL, stack_traces => NULL, adds => call ->> 'adds',
        token => NULL, worker => NULL, most => NULL, lock => NULL, names => NULL, repeats => NULL, isolates => NULL,
        from_priority => NULL, from_ord => NULL, from_due => NULL,
        marked_ids => CASE WHEN call ->> 'marks' IS NOT NULL OR call ->> 'kinds' IS NOT NULL THEN ARRAY[call ->> 'id'] END,
        marked_tokens => ARRAY[call ->> 'token'], marks => ARRAY[call ->> 'marks'],
        kinds => ropeway.texts_of_json(call -> 'kinds'), details => ropeway.texts_of_json(call -> 'details'),
        may_wake => true
    ) AS settled;
    RETURN coalesce(letters, 'da');
END
$$;
