-- Families: parents, and links to their children.

-- statement: next_family
SELECT coalesce(max(id), 0) + 1 FROM family;

-- statement: found_families
-- Takes :families (json, a list of id, queue, the parent's id, number of children, delay, due_at, is_released, policy).
INSERT INTO family (id, queue, parent, numbered, awaited, pending, delay, due_at, is_released, policy)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 3, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
    value ->> 7
FROM jsonb_each(:families);

-- statement: add_links
-- Takes :links (json, a list of family, number, queue, id, policy).
INSERT INTO link (family, number, queue, id, policy, state)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, {{PENDING}}
FROM jsonb_each(:links);

-- statement: families_of
-- Takes :jobs (json, a list of queue and id). Returns for each its place in the list and its family, if it has one.
SELECT CAST(json_group_array(json_array(asked.key, job.family)) AS BLOB)
FROM json_each(:jobs) AS asked
CROSS JOIN job ON job.queue = asked.value ->> 0 AND job.id = asked.value ->> 1
WHERE job.family IS NOT NULL;

-- statement: linked
-- Takes :links (json, a list of family, queue and id). Returns the places in the list of those that are children.
SELECT CAST(json_group_array(place) AS BLOB)
FROM (
    SELECT asked.key AS place
    FROM json_each(:links) AS asked
    CROSS JOIN link ON link.family = asked.value ->> 0
        AND link.queue = asked.value ->> 1 AND link.id = asked.value ->> 2
    UNION ALL
    SELECT asked.key
    FROM json_each(:links) AS asked
    CROSS JOIN job ON job.queue = asked.value ->> 1 AND job.id = asked.value ->> 2
    WHERE job.child_of = asked.value ->> 0
);

-- statement: become_parent
-- Takes :seq, :family. For an active job.
UPDATE job SET family = :family, has = has | {{HAS_CHILDREN}} WHERE seq = :seq;

-- statement: become_active_parent
UPDATE active SET has = has | {{HAS_CHILDREN}} WHERE seq = :seq;

-- statement: links_of_children
-- Takes :seqs (json). Returns what their parents know of them: place in the list, family, number, policy, state, and
-- whether there is a link.
SELECT CAST(json_group_array(
    json_array(
        asked.key,
        parent.value ->> 2,
        coalesce(link.number, job.child_number),
        coalesce(link.policy, (SELECT policy FROM family WHERE id = job.child_of)),
        coalesce(link.state, {{PENDING}}),
        link.number IS NOT NULL
    )
) AS BLOB)
FROM json_each(:seqs) AS asked
CROSS JOIN job ON job.seq = asked.value
CROSS JOIN json_each(job.parents) AS parent
LEFT JOIN link ON link.family = parent.value ->> 2 AND link.number = coalesce(
    job.child_number,
    (
        SELECT number FROM link AS known
        WHERE known.family = parent.value ->> 2 AND known.queue = job.queue AND known.id = job.id
    )
)
WHERE link.number IS NOT NULL OR job.child_of IS NOT NULL;

-- statement: families
-- Takes :families (json). The last six are about the parent; the last says whether it waits for its children.
SELECT CAST(json_group_array(
    json_array({{FAMILY}}, queue.name, family.parent, job.seq, job.has, job.options, later.seq IS NOT NULL)
) AS BLOB)
FROM json_each(:families) AS asked
CROSS JOIN family ON family.id = asked.value
CROSS JOIN queue ON queue.id = family.queue
CROSS JOIN job ON job.queue = family.queue AND job.id = family.parent
LEFT JOIN later ON later.seq = job.seq AND later.due_at IS NULL;

-- statement: write_families
-- Takes :families (json, as they were read).
UPDATE family SET {{SET_FAMILY}}
FROM jsonb_each(:families) AS changed
WHERE family.id = changed.value ->> 0;

-- statement: write_link
-- One by one: that takes less time than to take them from json.
UPDATE link SET state = ?, result = ?, reason = ? WHERE family = ? AND number = ?;

-- statement: end_without_link
-- The first end of a child that had no link.
INSERT OR REPLACE INTO link (family, number, queue, id, policy, state, result, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- statement: forget_link
DELETE FROM link WHERE family = ? AND number = ?;

-- statement: delay
-- Takes :delayed (json, a list of seq and due_at). They waited for children.
UPDATE later SET due_at = asked.value ->> 1
FROM jsonb_each(:delayed) AS asked
WHERE later.seq = asked.value ->> 0;

-- statement: children
-- Takes :families (json). Returns the children that still exist: the name of the queue, seq, id, state, has, token,
-- parents and the family of each; one that ended may come twice. Another job may have the id of a child that is gone: it
-- names other parents.
SELECT CAST(json_group_array(
    json_array(
        queue.name, child.seq, child.id, child.state, child.has, child.token, json(child.parents), child.family
    )
) AS BLOB)
FROM (
    SELECT link.family, link.queue, link.id
    FROM json_each(:families) AS asked
    CROSS JOIN link ON link.family = asked.value
    UNION ALL
    SELECT job.child_of, job.queue, job.id
    FROM json_each(:families) AS asked
    CROSS JOIN job ON job.child_of = asked.value
) AS listed
CROSS JOIN whole_job AS child ON child.queue = listed.queue AND child.id = listed.id
CROSS JOIN queue ON queue.id = listed.queue
WHERE listed.family IN (SELECT value ->> 2 FROM json_each(child.parents));

-- statement: write_parents
-- Takes :children (json, a list of seq and parents).
UPDATE job SET parents = changed.value ->> 1, child_of = NULL, child_number = NULL
FROM jsonb_each(:children) AS changed
WHERE job.seq = changed.value ->> 0;

-- statement: broken
-- Takes :family. Returns the children by which the parent may have failed, as far as they still exist: its number, the
-- name of the queue, seq, id, state and has of the child, and the state that the parent knows.
SELECT CAST(json_group_array(
    json_array(link.number, queue.name, child.seq, child.id, child.state, child.has, link.state)
) AS BLOB)
FROM link
CROSS JOIN whole_job AS child ON child.queue = link.queue AND child.id = link.id
CROSS JOIN queue ON queue.id = link.queue
WHERE link.family = :family AND link.policy = {{FAIL_POLICY}} AND link.state IN ({{FAILED}}, {{CANCELLED}})
    AND link.family IN (SELECT value ->> 2 FROM json_each(child.parents));

-- statement: family_of
-- Takes :queue, :id. Returns no row if there is no such job; otherwise its family, whether it would wait for its children,
-- and how they are.
SELECT job.family, family.awaited > 0 OR family.owed IS NOT NULL, {{CHILD_COUNTS}}
FROM job
LEFT JOIN family ON family.id = job.family
WHERE job.queue = :queue AND job.id = :id;

-- statement: page
-- Takes :family, :states (json), :first (a number), :limit. Returns a list of number and all about each.
SELECT CAST(json_group_array(
    json_array(
        number,
        json_object(
            'queue', name, 'id', id, 'policy', policy, 'state', state, 'result', result, 'reason', reason
        )
    )
) AS BLOB)
FROM (
    SELECT listed.*, queue.name
    FROM (
        SELECT number, queue, id, policy, state, result, reason
        FROM link
        WHERE family = :family AND number >= :first AND state IN (SELECT value FROM json_each(:states))
        UNION ALL
        SELECT job.child_number, job.queue, job.id, family.policy, {{PENDING}}, NULL, NULL
        FROM job
        CROSS JOIN family ON family.id = job.child_of
        WHERE job.child_of = :family AND job.child_number >= :first
            AND {{PENDING}} IN (SELECT value FROM json_each(:states))
            AND NOT EXISTS (SELECT 1 FROM link WHERE family = :family AND number = job.child_number)
        ORDER BY 1
        LIMIT :limit
    ) AS listed
    CROSS JOIN queue ON queue.id = listed.queue
);
