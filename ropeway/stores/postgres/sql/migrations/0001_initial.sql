-- Tables of jobs, their states, their events and counters, and small records.

CREATE TYPE ropeway.state AS ENUM (
    'waiting', 'waiting-children', 'delayed', 'active', 'completed', 'failed', 'cancelled'
);

-- One row. A newer Ropeway raises the number with each migration, and `oldest` with those after which the functions of older
-- versions do not work any more.
CREATE TABLE ropeway.version (
    number integer NOT NULL,
    oldest integer NOT NULL
);
INSERT INTO ropeway.version (number, oldest) VALUES (0, 1);

-- The sets of functions in this schema, each of one release of Ropeway. Their names end in the digest.
CREATE TABLE ropeway.function_set (
    digest text COLLATE "C" PRIMARY KEY,
    -- About a day late.
    used_at bigint NOT NULL
);

-- Settings of a queue. The row stays when its queue is obliterated: its id and event numbers must not be used again.
CREATE TABLE ropeway.queue (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    is_configured boolean NOT NULL DEFAULT false,
    is_paused boolean NOT NULL DEFAULT false,
    paused_names text[] NOT NULL DEFAULT '{}',
    -- Whether it ever had a job that expires, so that claims in other queues need not look for any.
    has_deadlines boolean NOT NULL DEFAULT false,
    max_active bigint CHECK (max_active > 0),
    -- Its retention in stages: the ages, until when jobs are stale, and the stages that have callbacks. `callbacks` is null if it
    -- never had any of this.
    stale_after bigint,
    delete_after bigint,
    stale_until bigint NOT NULL DEFAULT 0,
    callbacks text[]
);

CREATE SEQUENCE ropeway.job_seq AS bigint;

-- What no move changes, so that a large payload is written once. Priority and ord are a job's position among the waiting
-- ones, whenever it is one; ord is its sequence number, or the negative of it for lifo.
CREATE TABLE ropeway.job (
    ord bigint NOT NULL,
    created_at bigint NOT NULL,
    queue integer NOT NULL,
    priority integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    options text NOT NULL,
    data text NOT NULL,
    -- Null if it has none.
    tags text[],
    -- The jobs that wait for it (json, a list of queue and id), and their families in the same order. Null if none does.
    parents text,
    families bigint[],
    -- That of the jobs that it waits for. Null if it never had any.
    family bigint,
    -- Rarely used fields (json, an object). Null if it has none.
    extras text,
    -- The number of its older marks in `mark`. Null if it never had any there.
    older_marks bigint,
    PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Every job has a row in one of the next four tables, by its state. Each is ordered as it is used and has the columns that
-- its moves need, so that neither a claim nor a settle reads jobs of other states. `has_ties` is true if other jobs wait for
-- it or it has extras, so that its end is more than a move; else it is null, and takes no space. `marks` are those written last
-- (`sql/lib/write_held.sql` has the format), so that writing one changes a single row; null if there are none. `start_by` is
-- null unless it expires then: a claim does not take that along, so it exists until a job was started.

CREATE TABLE ropeway.waiting (
    ord bigint NOT NULL,
    queue integer NOT NULL,
    priority integer NOT NULL,
    attempts_made integer NOT NULL DEFAULT 0,
    attempts_started integer NOT NULL DEFAULT 0,
    stalled_count integer NOT NULL DEFAULT 0,
    logged integer NOT NULL DEFAULT 0,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    started_at bigint,
    renewed_at bigint,
    token text COLLATE "C",
    worker text COLLATE "C",
    reason text,
    progress text,
    has_ties boolean,
    marks text,
    start_by bigint
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0
);

CREATE UNIQUE INDEX waiting_in_line ON ropeway.waiting (queue, priority, ord);
CREATE INDEX waiting_by_name ON ropeway.waiting (queue, name, priority, ord);
CREATE INDEX waiting_expiring ON ropeway.waiting (queue, start_by) WHERE start_by IS NOT NULL;

-- No index but its key, and room in every page: renewing a lock stays on its page and changes no index.
CREATE TABLE ropeway.active (
    ord bigint NOT NULL,
    started_at bigint NOT NULL,
    renewed_at bigint NOT NULL,
    lock_until bigint NOT NULL,
    queue integer NOT NULL,
    priority integer NOT NULL,
    attempts_made integer NOT NULL,
    attempts_started integer NOT NULL CHECK (attempts_started > 0),
    stalled_count integer NOT NULL,
    logged integer NOT NULL,
    -- Whether it is the only handler of its process, so that a stall can be blamed on it.
    alone boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    reason text,
    progress text,
    has_ties boolean,
    marks text,
    PRIMARY KEY (queue, id)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 1, autovacuum_vacuum_cost_delay = 0
);

-- What may not run yet: delayed jobs, and those that wait for children, which have no due_at.
CREATE TABLE ropeway.later (
    ord bigint NOT NULL,
    due_at bigint,
    queue integer NOT NULL,
    priority integer NOT NULL,
    attempts_made integer NOT NULL DEFAULT 0,
    attempts_started integer NOT NULL DEFAULT 0,
    stalled_count integer NOT NULL DEFAULT 0,
    logged integer NOT NULL DEFAULT 0,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    started_at bigint,
    renewed_at bigint,
    token text COLLATE "C",
    worker text COLLATE "C",
    reason text,
    progress text,
    has_ties boolean,
    marks text,
    start_by bigint,
    -- The name of a mark that ends the delay. Null unless it is postponed until there is one.
    awaits text COLLATE "C",
    PRIMARY KEY (queue, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX later_due ON ropeway.later (queue, due_at, ord) WHERE due_at IS NOT NULL;
CREATE INDEX later_expiring ON ropeway.later (queue, start_by) WHERE start_by IS NOT NULL;
CREATE INDEX later_children ON ropeway.later (queue, abs(ord)) WHERE due_at IS NULL;

-- Rows are added at one end, and removed by retention at the other.
CREATE TABLE ropeway.finished (
    seq bigint NOT NULL,
    finished_at bigint NOT NULL,
    -- Null if it is kept for ever.
    expires_at bigint,
    state ropeway.state NOT NULL CHECK (state IN ('completed', 'failed', 'cancelled')),
    queue integer NOT NULL,
    attempts_made integer NOT NULL,
    attempts_started integer NOT NULL,
    stalled_count integer NOT NULL,
    logged integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    started_at bigint,
    renewed_at bigint,
    token text COLLATE "C",
    worker text COLLATE "C",
    reason text,
    progress text,
    result text,
    has_ties boolean,
    marks text,
    PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Those that are kept for ever have an index of their own, because counts skip them.
CREATE INDEX finished_by_time ON ropeway.finished (queue, state, finished_at, seq) WHERE expires_at IS NOT NULL;
CREATE INDEX finished_kept ON ropeway.finished (queue, state, finished_at, seq) WHERE expires_at IS NULL;
-- Without those that only a count removes: they expire at the last instant of all.
CREATE INDEX finished_expiring ON ropeway.finished (queue, expires_at) WHERE expires_at < 253402300799999;

-- What a parent knows of its children as a whole. Its id is less than those of all its descendants, and calls lock families
-- in descending order: `sql/lib/conclude.sql` says why.
CREATE TABLE ropeway.family (
    id bigint PRIMARY KEY,
    -- The delay of the parent, until its first release.
    delay bigint NOT NULL DEFAULT 0,
    due_at bigint,
    -- The parent.
    queue integer NOT NULL,
    -- How many children it has, how many of them are still waited for, and how many ended in each way.
    total integer NOT NULL DEFAULT 0,
    awaited integer NOT NULL DEFAULT 0,
    completed integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    cancelled integer NOT NULL DEFAULT 0,
    -- The number of the newest link.
    newest integer NOT NULL DEFAULT 0,
    -- Whether the parent need not wait again for children that are still left.
    is_released boolean NOT NULL DEFAULT false,
    parent text COLLATE "C" NOT NULL,
    -- The strongest effect of a child that failed while the parent did not wait, until it waits.
    owed text COLLATE "C",
    owed_reason text
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- What a parent knows of each child, also when that is removed. Room in every page: the end of a child changes no index.
CREATE TABLE ropeway.link (
    family bigint NOT NULL,
    number integer NOT NULL,
    queue integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    policy text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    result text,
    reason text,
    PRIMARY KEY (family, queue, id)
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- By an expression, so that no child is searched with it among all of its family, as long as the table seems small.
CREATE UNIQUE INDEX link_in_order ON ropeway.link ((-family), number);

-- The end of a job that has ties: how it ended, for its parents, and their families; the attempts it had made; its dedupe
-- key; and its follow-ups (json, a list, see `add_listed`).
CREATE TYPE ropeway.news AS (
    queue integer, id text, ended text, result text, reason text, families bigint[], attempts integer, key text, follow_ups text
);

-- What news do to a parent: the effect of the first child that failed (null: none is waited for any more), and the strongest
-- of the others.
CREATE TYPE ropeway.judgement AS (
    family bigint, queue integer, id text, effect text, reason text, other_effect text, other_reason text
);

-- Dedupe keys that jobs hold. `sql/lib/take_keys.sql` says how calls lock them.
CREATE TABLE ropeway.held_key (
    -- Until then it is held whatever becomes of the job. Null: as long as the job is not final, and always if another waits.
    until bigint,
    queue integer NOT NULL,
    key text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    -- The job that waits for the end of the holder.
    next text COLLATE "C",
    PRIMARY KEY (queue, key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX held_key_until ON ropeway.held_key (queue, until) WHERE until IS NOT NULL;

-- Writers of one queue take turns, by an advisory lock.
CREATE TABLE ropeway.schedule (
    -- Null if it is paused or has ended.
    next_at bigint,
    version bigint NOT NULL,
    queue integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (queue, id)
) WITH (fillfactor = 50);

CREATE INDEX schedule_due ON ropeway.schedule (queue, next_at, id) WHERE next_at IS NOT NULL;

-- Failed attempts; a job's numbers have no gaps between the oldest and the newest kept.
CREATE TABLE ropeway.failure (
    seq bigint NOT NULL,
    started_at bigint NOT NULL,
    at bigint NOT NULL,
    number integer NOT NULL,
    attempt integer NOT NULL,
    worker text,
    reason text NOT NULL,
    trace text NOT NULL,
    PRIMARY KEY (seq, number)
);

CREATE TABLE ropeway.log_line (
    seq bigint NOT NULL,
    at bigint NOT NULL,
    number integer NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (seq, number)
);

-- Marks that have no room in the row of a job's state, older than those there. A job keeps their number, whatever becomes of its
-- place in line.
CREATE TABLE ropeway.mark (
    number bigint NOT NULL,
    at bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (number, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- One row for every call that changed something: its event entries (json, comma separated), by how much it changes the
-- number of jobs in each state, and what it adds to the metrics. `sql/lib/fold.sql` says how steps are numbered and added up.
CREATE TABLE ropeway.step (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at bigint NOT NULL,
    -- That of its last event; null until it is folded.
    number bigint,
    queue integer NOT NULL,
    events integer NOT NULL,
    waiting integer,
    waiting_children integer,
    delayed integer,
    active integer,
    completed integer,
    failed integer,
    cancelled integer,
    metric_added integer,
    metric_completed integer,
    metric_failed integer,
    metric_retried integer,
    metric_stalled integer,
    metric_cancelled integer,
    metric_removed integer,
    entries text NOT NULL
) WITH (
    fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 1, autovacuum_vacuum_cost_delay = 0
);
-- Long ones are stored outside of the row, so that the fold does not copy them; compressing them is not worth it.
ALTER TABLE ropeway.step ALTER COLUMN entries SET STORAGE EXTERNAL;

CREATE INDEX step_not_folded ON ropeway.step (queue, id) WHERE number IS NULL;
CREATE INDEX step_in_stream ON ropeway.step (queue, number) WHERE number IS NOT NULL;

-- How many jobs each state has, and the number of the newest event, as of the last fold. Every fold inserts a row and
-- deletes the one before: the newest is found at once, however many dead ones an old transaction keeps.
CREATE TABLE ropeway.tally (
    fold bigint NOT NULL,
    waiting bigint NOT NULL DEFAULT 0,
    waiting_children bigint NOT NULL DEFAULT 0,
    delayed bigint NOT NULL DEFAULT 0,
    active bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    -- The number of the newest event, and where the stream began: null once its beginning was trimmed, or -1 less the
    -- number of the last event that is gone, where its step may still be there.
    events bigint NOT NULL DEFAULT 0,
    events_from bigint DEFAULT 0,
    queue integer NOT NULL,
    PRIMARY KEY (queue, fold)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- How many moves there were in each minute, as of the last fold.
CREATE TABLE ropeway.metric (
    queue integer NOT NULL,
    minute bigint NOT NULL,
    added bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    retried bigint NOT NULL,
    stalled bigint NOT NULL,
    cancelled bigint NOT NULL,
    removed bigint NOT NULL,
    PRIMARY KEY (queue, minute)
) WITH (fillfactor = 50);

-- Revoked locks of running jobs. A writer holds an advisory lock of the queue until its commit, so that a reader that has
-- seen a number has seen all before it.
CREATE TABLE ropeway.revoked (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    queue integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    -- What became of the job: cancelled or removed.
    why text NOT NULL
);

CREATE INDEX revoked_of_queue ON ropeway.revoked (queue, number);

CREATE TABLE ropeway.record (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    version bigint NOT NULL,
    expires_at bigint,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);

CREATE INDEX record_expiring ON ropeway.record (expires_at) WHERE expires_at IS NOT NULL;

-- What an add does to jobs that hold its dedupe keys, until it is written: the steps of their queues, locks that it revokes,
-- and news.
CREATE TYPE ropeway.effects AS (
    queues integer[], steps ropeway.step[], revoked ropeway.revoked[], news ropeway.news[]
);

-- Queues are few. If the tables are analyzed while there is one job in each queue, the planner expects as many queues as
-- jobs, and searches a job among all of its queue.
ALTER TABLE ropeway.job ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.waiting ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.active ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.later ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.finished ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.step ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.link ALTER COLUMN queue SET (n_distinct = 10);
ALTER TABLE ropeway.held_key ALTER COLUMN queue SET (n_distinct = 10);

-- A job with the columns of its state; query it by queue and id.
CREATE VIEW ropeway.whole_job AS
SELECT
    job.queue, job.id, job.name, job.data, job.options,
    (CASE
        WHEN active.id IS NOT NULL THEN 'active'
        WHEN waiting.id IS NOT NULL THEN 'waiting'
        WHEN finished.id IS NOT NULL THEN finished.state::text
        WHEN later.due_at IS NOT NULL THEN 'delayed'
        ELSE 'waiting-children'
    END)::ropeway.state AS state,
    job.priority, job.ord, job.created_at,
    coalesce(active.attempts_made, waiting.attempts_made, finished.attempts_made, later.attempts_made)
        AS attempts_made,
    coalesce(active.attempts_started, waiting.attempts_started, finished.attempts_started, later.attempts_started)
        AS attempts_started,
    coalesce(active.stalled_count, waiting.stalled_count, finished.stalled_count, later.stalled_count)
        AS stalled_count,
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
    finished.result,
    coalesce(active.logged, waiting.logged, finished.logged, later.logged) AS logged,
    job.tags, job.parents,
    CASE
        WHEN job.family IS NULL THEN 0
        ELSE coalesce((SELECT family.total FROM ropeway.family WHERE family.id = job.family), 0)
    END AS children,
    job.extras, job.families, job.family,
    CASE WHEN job.families IS NOT NULL OR job.extras IS NOT NULL THEN true END AS has_ties,
    coalesce(waiting.start_by, later.start_by) AS start_by,
    coalesce(active.marks, waiting.marks, finished.marks, later.marks) AS marks, job.older_marks, later.awaits
FROM ropeway.job
LEFT JOIN ropeway.active ON active.queue = job.queue AND active.id = job.id
LEFT JOIN ropeway.waiting
    ON waiting.queue = job.queue AND waiting.priority = job.priority AND waiting.ord = job.ord
LEFT JOIN ropeway.finished ON finished.queue = job.queue AND finished.id = job.id
LEFT JOIN ropeway.later ON later.queue = job.queue AND later.id = job.id;
