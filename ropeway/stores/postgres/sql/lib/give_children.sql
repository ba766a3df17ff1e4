-- Adds children to an active job.
-- Takes the job, which must be locked; JSON: the `queues`, `ids` and `policies` of the children that it gets, and the
-- parameters of `add` by which they are added (see `add_json`); and the instant.
-- Returns false if one of their ids exists already: then none is added.
CREATE OR REPLACE FUNCTION ropeway.give_children(job ropeway.whole_job, given json, instant bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    -- Less than the ids of their own families.
    family_id CONSTANT bigint := coalesce(job.family, nextval('ropeway.job_seq'));
    letters text;
BEGIN
    IF job.family IS NULL THEN
        INSERT INTO ropeway.family (id, queue, parent, is_released) VALUES (family_id, job.queue, job.id, true);
        UPDATE ropeway.job AS j SET family = family_id WHERE j.queue = job.queue AND j.id = job.id;
    END IF;
    letters := ropeway.add_json(given ->> 'adds', instant);
    IF split_part(letters, ' ', 1) LIKE '%x%' THEN
        IF job.family IS NULL THEN
            DELETE FROM ropeway.family AS f WHERE f.id = family_id;
            UPDATE ropeway.job AS j SET family = NULL WHERE j.queue = job.queue AND j.id = job.id;
        END IF;
        RETURN false;
    END IF;
    PERFORM FROM ropeway.family AS f WHERE f.id = family_id FOR UPDATE;
    WITH linked AS (
        INSERT INTO ropeway.link (family, number, queue, id, policy, state)
        SELECT family_id, family.newest + child.n, queue.id, child.id, child.policy, '{{CHILD_PENDING}}'
        FROM unnest(
            ropeway.texts_of_json(given -> 'queues'), ropeway.texts_of_json(given -> 'ids'),
            ropeway.texts_of_json(given -> 'policies')
        ) WITH ORDINALITY AS child (queue, id, policy, n)
        JOIN ropeway.queue ON queue.name = child.queue
        CROSS JOIN ropeway.family
        WHERE family.id = family_id
        ON CONFLICT (family, queue, id) DO NOTHING
        RETURNING link.number
    )
    UPDATE ropeway.family AS f
    SET total = f.total + new.amount, awaited = f.awaited + new.amount, newest = new.newest
    FROM (SELECT count(*) AS amount, max(linked.number) AS newest FROM linked) AS new
    WHERE f.id = family_id AND new.amount > 0;
    RETURN true;
END
$$;
