-- Jobs, where they stand, and what is remembered about them.

-- What never moves. Moves and renewals write only `place`, so a large payload is written once.
CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    options TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (queue, id)
) STRICT;

-- Where a job stands: one small row for each. The result comes last and is written when nothing moves any more.
CREATE TABLE place (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    due_at INTEGER,
    attempts_made INTEGER NOT NULL DEFAULT 0,
    attempts_started INTEGER NOT NULL DEFAULT 0,
    stalled_count INTEGER NOT NULL DEFAULT 0,
    logged INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    worker TEXT,
    started_at INTEGER,
    renewed_at INTEGER,
    lock_until INTEGER,
    finished_at INTEGER,
    expires_at INTEGER,
    reason TEXT,
    progress TEXT,
    result TEXT
) STRICT;

CREATE INDEX place_waiting ON place (queue, priority, ord) WHERE state = 'waiting';
CREATE INDEX place_waiting_by_name ON place (queue, name, priority, ord) WHERE state = 'waiting';
CREATE INDEX place_waiting_children ON place (queue, seq) WHERE state = 'waiting-children';
CREATE INDEX place_delayed ON place (queue, due_at, ord) WHERE state = 'delayed';
CREATE INDEX place_active ON place (queue, lock_until) WHERE state = 'active';
CREATE INDEX place_finished ON place (queue, state, finished_at) WHERE finished_at IS NOT NULL;
-- Without the jobs that are kept for ever: those expire at the last instant of all.
CREATE INDEX place_expiring ON place (queue, expires_at) WHERE expires_at < 253402300799999;

-- Failed attempts; a job's numbers have no gaps between the oldest and the newest kept.
CREATE TABLE failure (
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
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
    at INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row per entry. The id is the queue's id in its upper bits and the number of its last event in the lower 40,
-- so one queue's entries lie together in order, without an index.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

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
