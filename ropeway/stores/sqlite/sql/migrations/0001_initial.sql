-- Jobs, where they stand, and what is remembered about them.

-- What moves do not change, so a large payload is written once. Priority and ord say where a job waits, whenever it does.
CREATE TABLE job (
    -- A job that goes behind others gets a new one, here and wherever it is named.
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    priority INTEGER NOT NULL,
    -- The sequence number, or its negative.
    ord INTEGER NOT NULL,
    options TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- What it has beside what every job has: tags, parents, children, extras, marks (bits); 0 for plain jobs. Before
    -- the data, as the next three: that may be long and lie on pages of its own.
    has INTEGER NOT NULL DEFAULT 0,
    -- Jobs that wait for it (json, a list of queue, id and the family that it is in).
    parents TEXT,
    -- Its children.
    family INTEGER,
    -- The family of its only parent and its number there, if `link` has no row for it before it ends.
    child_of INTEGER,
    child_number INTEGER,
    -- Fields that few jobs have (json).
    extras TEXT,
    data TEXT NOT NULL,
    UNIQUE (queue, id)
) STRICT;

CREATE INDEX job_by_family ON job (child_of, child_number) WHERE child_of IS NOT NULL;

-- Every job stands in one of the next four tables. Each is ordered as it is used, so that what moves at once lies on
-- few pages: with a million waiting jobs of all priorities too, a batch comes from one end of one table and goes to
-- another's.

-- In the order of claiming.
CREATE TABLE waiting (
    queue INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- As in the job: what ends a job finds it here, and asks for what there is.
    has INTEGER NOT NULL DEFAULT 0,
    attempts_made INTEGER NOT NULL DEFAULT 0,
    attempts_started INTEGER NOT NULL DEFAULT 0,
    stalled_count INTEGER NOT NULL DEFAULT 0,
    logged INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    worker TEXT,
    started_at INTEGER,
    renewed_at INTEGER,
    reason TEXT,
    progress TEXT,
    PRIMARY KEY (queue, priority, ord)
) STRICT, WITHOUT ROWID;

CREATE INDEX waiting_by_name ON waiting (queue, name, priority, ord);

-- Not many: only what is running. So few that locks need no index, and a renewal writes to one place.
CREATE TABLE active (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    name TEXT NOT NULL,
    has INTEGER NOT NULL DEFAULT 0,
    attempts_made INTEGER NOT NULL,
    attempts_started INTEGER NOT NULL,
    stalled_count INTEGER NOT NULL,
    logged INTEGER NOT NULL,
    token TEXT NOT NULL,
    worker TEXT,
    started_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    lock_until INTEGER NOT NULL,
    -- Whether no other handler of its process can be to blame if it stalls.
    alone INTEGER NOT NULL,
    reason TEXT,
    progress TEXT
) STRICT;

-- What may not run yet: delayed jobs, and those that wait for children, which have no due_at.
CREATE TABLE later (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    due_at INTEGER,
    ord INTEGER NOT NULL,
    name TEXT NOT NULL,
    attempts_made INTEGER NOT NULL DEFAULT 0,
    attempts_started INTEGER NOT NULL DEFAULT 0,
    stalled_count INTEGER NOT NULL DEFAULT 0,
    logged INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    worker TEXT,
    started_at INTEGER,
    renewed_at INTEGER,
    reason TEXT,
    progress TEXT,
    -- The name of the mark that ends the delay.
    awaits TEXT
) STRICT;

CREATE INDEX later_due ON later (queue, due_at, ord) WHERE due_at IS NOT NULL;
CREATE INDEX later_children ON later (queue, seq) WHERE due_at IS NULL;

-- In the order of finishing: it grows at one end, and retention takes from the other.
CREATE TABLE finished (
    queue INTEGER NOT NULL,
    state TEXT NOT NULL,
    -- For ever: those have no expires_at, and lie apart, because counts pass them over.
    is_kept INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    expires_at INTEGER,
    name TEXT NOT NULL,
    attempts_made INTEGER NOT NULL,
    attempts_started INTEGER NOT NULL,
    stalled_count INTEGER NOT NULL,
    logged INTEGER NOT NULL,
    token TEXT,
    worker TEXT,
    started_at INTEGER,
    renewed_at INTEGER,
    reason TEXT,
    progress TEXT,
    result TEXT,
    PRIMARY KEY (queue, state, is_kept, finished_at, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX finished_by_seq ON finished (seq);
-- Without those that only a count removes: they expire at the last instant of all.
CREATE INDEX finished_expiring ON finished (queue, expires_at) WHERE expires_at < {{LAST_INSTANT}};

-- A job with the row of its state; ask for it by seq, or by queue and id. Once it is found, the tables left are not looked into.
CREATE VIEW whole_job AS
SELECT
    job.seq, job.queue, job.id, job.name, job.priority, job.ord, job.options, job.created_at,
    job.has, job.parents, job.family, job.child_of, job.extras, job.data,
    CASE
        WHEN active.seq IS NOT NULL THEN {{ACTIVE}}
        WHEN waiting.ord IS NOT NULL THEN {{WAITING}}
        WHEN finished.seq IS NOT NULL THEN finished.state
        WHEN later.due_at IS NOT NULL THEN {{DELAYED}}
        ELSE {{WAITING_CHILDREN}}
    END AS state,
    coalesce(active.attempts_made, waiting.attempts_made, finished.attempts_made, later.attempts_made)
        AS attempts_made,
    coalesce(active.attempts_started, waiting.attempts_started, finished.attempts_started, later.attempts_started)
        AS attempts_started,
    coalesce(active.stalled_count, waiting.stalled_count, finished.stalled_count, later.stalled_count)
        AS stalled_count,
    coalesce(active.logged, waiting.logged, finished.logged, later.logged) AS logged,
    later.due_at,
    coalesce(active.token, waiting.token, finished.token, later.token) AS token,
    coalesce(active.worker, waiting.worker, finished.worker, later.worker) AS worker,
    coalesce(active.started_at, waiting.started_at, finished.started_at, later.started_at) AS started_at,
    coalesce(active.renewed_at, waiting.renewed_at, finished.renewed_at, later.renewed_at) AS renewed_at,
    active.lock_until,
    finished.finished_at,
    finished.expires_at,
    coalesce(active.reason, waiting.reason, finished.reason, later.reason) AS reason,
    coalesce(active.progress, waiting.progress, finished.progress, later.progress) AS progress,
    finished.result
FROM job
LEFT JOIN active ON active.seq = job.seq
LEFT JOIN waiting ON waiting.queue = iif(active.seq IS NULL, job.queue, NULL)
    AND waiting.priority = job.priority AND waiting.ord = job.ord
LEFT JOIN finished ON finished.seq = iif(active.seq IS NULL AND waiting.ord IS NULL, job.seq, NULL)
LEFT JOIN later ON later.seq = iif(active.seq IS NULL AND waiting.ord IS NULL AND finished.seq IS NULL, job.seq, NULL);

-- Failed attempts; a job's numbers have no gaps between the oldest and the newest kept.
CREATE TABLE failure (
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    worker TEXT,
    reason TEXT NOT NULL,
    trace TEXT NOT NULL,
    PRIMARY KEY (seq, number)
) STRICT;

CREATE TABLE log (
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (seq, number)
) STRICT;

-- Tags of the jobs that have any, in the order in which they were given.
CREATE TABLE tag (
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    tag TEXT NOT NULL,
    PRIMARY KEY (seq, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX tag_by_name ON tag (queue, tag, seq);

-- Marks of the jobs that have any, a row each: writing one leaves the others alone.
CREATE TABLE mark (
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (seq, name)
) STRICT, WITHOUT ROWID;

-- Instants by which jobs have to be started, from their add to their first claim, their end or their removal.
CREATE TABLE deadline (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX deadline_due ON deadline (queue, at);

-- Dedupe keys that are held. Jobs are named by their ids: a key that is held for a time may outlive its job.
CREATE TABLE held_key (
    queue INTEGER NOT NULL,
    key TEXT NOT NULL,
    holder TEXT NOT NULL,
    -- When it is free, whatever becomes of the job; null if the job holds it until its end.
    until INTEGER,
    -- The job that waits for the end of the holder.
    next TEXT,
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX held_key_until ON held_key (queue, until) WHERE until IS NOT NULL;

CREATE TABLE schedule (
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    -- Null if it is paused or has ended.
    next_at INTEGER,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (queue, next_at, id) WHERE next_at IS NOT NULL;

-- Jobs that have, or had, children: how far these are, and what becomes of the parent.
CREATE TABLE family (
    id INTEGER PRIMARY KEY,
    -- The parent. Not by its seq, which changes.
    queue INTEGER NOT NULL,
    parent TEXT NOT NULL,
    -- How many children it ever had: the number of the next one.
    numbered INTEGER NOT NULL DEFAULT 0,
    -- How many are still waited for.
    awaited INTEGER NOT NULL DEFAULT 0,
    -- How many are in each state.
    pending INTEGER NOT NULL DEFAULT 0,
    completed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    size INTEGER GENERATED ALWAYS AS (pending + completed + failed + cancelled),
    -- The delay of the parent, until its first release.
    delay INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER,
    -- Whether it need not wait again for those that are left.
    is_released INTEGER NOT NULL DEFAULT 0,
    -- The strongest effect of a child that failed while the parent did not wait, until it waits.
    owed TEXT,
    owed_reason TEXT NOT NULL DEFAULT '',
    -- That of children that have no row in `link`.
    policy TEXT
) STRICT;

-- Children, as their parents know them, also when they are gone. In the order in which they were added: they end in
-- about that order, so a batch of ends writes to few pages, whatever the ids are. Most flows are trees whose siblings are
-- alike: such a child names its family itself, and has no row here before it ends.
CREATE TABLE link (
    family INTEGER NOT NULL,
    number INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    policy TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    result TEXT,
    PRIMARY KEY (family, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX link_by_child ON link (family, queue, id);

-- Settings and counters of a queue. A row stays when its queue is obliterated: its id and its event numbers must
-- not come again.
CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    is_configured INTEGER NOT NULL DEFAULT 0,
    is_paused INTEGER NOT NULL DEFAULT 0,
    paused_names TEXT NOT NULL DEFAULT '[]',
    max_active INTEGER,
    waiting INTEGER NOT NULL DEFAULT 0,
    waiting_children INTEGER NOT NULL DEFAULT 0,
    delayed INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    completed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    -- The number of the newest event, and where the stream began; null once its beginning was trimmed.
    events INTEGER NOT NULL DEFAULT 0,
    events_from INTEGER DEFAULT 0,
    -- The newest instant that was stored: no clock may read less.
    at INTEGER NOT NULL DEFAULT 0,
    -- What moved in the newest minute that has metrics (json); it goes to `metric` when there is a newer one.
    newest_minute TEXT,
    -- No job has to be started before this instant; null if none has to be by any. It may be too early: it is set right
    -- when it has come.
    first_deadline INTEGER,
    -- Its retention in stages (json), or null.
    stages TEXT
) STRICT;

-- One row per entry. The id is the queue's id in its upper bits and the number of its last event in the lower 40,
-- so one queue's entries lie together in order, without an index.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- What moved in each minute but the newest.
CREATE TABLE metric (
    queue INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    added INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    stalled INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    PRIMARY KEY (queue, minute)
) STRICT, WITHOUT ROWID;

-- Locks of running jobs that were taken away. AUTOINCREMENT: a reader's place must not come again.
CREATE TABLE revoked (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    token TEXT NOT NULL,
    -- What became of the job: cancelled or removed.
    why TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX revoked_of_queue ON revoked (queue);

CREATE TABLE record (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    version INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX record_expiring ON record (expires_at) WHERE expires_at IS NOT NULL;

-- What the file knows of its -inbox: the key by which the two belong together, and the position up to which
-- its jobs are in the tables.
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    key BLOB NOT NULL,
    ingested INTEGER NOT NULL
) STRICT;

INSERT INTO inbox (id, key, ingested) VALUES (1, randomblob(16), 0);
