-- Adds a bundle of jobs, whole or not at all, for callers of any driver: in their transaction, which is theirs to commit.
-- Takes JSON: the database that the jobs are meant for, and what `add` takes, by name. Data and options are texts, escaped
-- once more, so that a NUL in them stays what it is.
-- Returns the letters of `add`, or ! and the name of the database if it is another one.
CREATE OR REPLACE FUNCTION ropeway.add_json(given text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    call json := given;
    letters text;
BEGIN
    IF call ->> 'database' <> current_database() THEN
        RETURN '!' || current_database();
    END IF;
    -- Wakes are sent unseen: who listens at the commit, nobody knows yet.
    SELECT added.verdicts INTO letters FROM ropeway.add(
        queues => ropeway.texts(call -> 'queues'),
        numbers => ropeway.texts(call -> 'numbers')::integer[],
        bundles => NULL,
        ids => ropeway.texts(call -> 'ids'),
        names => ropeway.texts(call -> 'names'),
        datas => ropeway.texts(call -> 'datas'),
        options => ropeway.texts(call -> 'options'),
        priorities => ropeway.texts(call -> 'priorities')::integer[],
        lifos => ropeway.texts(call -> 'lifos')::boolean[],
        delays => ropeway.texts(call -> 'delays')::bigint[],
        dues => ropeway.texts(call -> 'dues')::bigint[],
        tags => ropeway.texts(call -> 'tags')
    ) AS added;
    RETURN letters;
END
$$;
