-- Adds a bundle of jobs in a caller's transaction, through any driver.
-- Takes JSON: the database that the jobs are meant for (null: this one), and the parameters of `add` by name. Data and options are
-- texts, escaped once more, so that a NUL in them survives. Then the instant.
-- Returns the answer of `add`; or ! and the current database, if that is another one.
CREATE OR REPLACE FUNCTION ropeway.add_json(given text, at bigint DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    call json := given;
    letters text;
BEGIN
    IF call ->> 'database' <> current_database() THEN
        RETURN '!' || current_database();
    END IF;
    -- Notifies without looking for listeners: there may be others at the commit.
    SELECT added.verdicts INTO letters FROM ropeway.add(
        queues => ropeway.texts_of_json(call -> 'queues'),
        numbers => ropeway.texts_of_json(call -> 'numbers')::integer[],
        bundles => ropeway.texts_of_json(call -> 'bundles')::integer[],
        ids => ropeway.texts_of_json(call -> 'ids'),
        names => ropeway.texts_of_json(call -> 'names'),
        datas => ropeway.texts_of_json(call -> 'datas'),
        options => ropeway.texts_of_json(call -> 'options'),
        priorities => ropeway.texts_of_json(call -> 'priorities')::integer[],
        lifos => ropeway.texts_of_json(call -> 'lifos')::boolean[],
        delays => ropeway.texts_of_json(call -> 'delays')::bigint[],
        dues => ropeway.texts_of_json(call -> 'dues')::bigint[],
        tags => ropeway.texts_of_json(call -> 'tags'),
        flow => call ->> 'flow',
        extras => ropeway.texts_of_json(call -> 'extras'),
        keys => ropeway.texts_of_json(call -> 'keys'),
        modes => ropeway.texts_of_json(call -> 'modes'),
        ttls => ropeway.texts_of_json(call -> 'ttls')::bigint[],
        at => add_json.at
    ) AS added;
    RETURN letters;
END
$$;
