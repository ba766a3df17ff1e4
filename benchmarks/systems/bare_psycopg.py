# /// script
# dependencies = ["psycopg[binary]"]
#
# [tool.benchmarks]
# title = "bare psycopg"
# family = "postgres"
# role = "limit"
# durable = true
# note = "the limit: two connections, each settling 100 and claiming 100 per transaction in tables like Ropeway's"
# jobs = 25_000
# ///
"""What PostgreSQL itself can do with tables like Ropeway's: the moves, but no events, counters, tokens or retention.

Arrays are sent in the binary format, which psycopg writes three times as fast as text.
"""

import json
import threading
import time

import psycopg

from benchmarks import protocol

BATCH = 100
CONNECTIONS = 2
TABLES = """
CREATE SEQUENCE IF NOT EXISTS job_seq;
CREATE TABLE IF NOT EXISTS job (
    ord bigint NOT NULL, created_at bigint NOT NULL, queue integer NOT NULL, priority integer NOT NULL,
    id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, options text NOT NULL, data text NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE TABLE IF NOT EXISTS waiting (
    ord bigint NOT NULL, queue integer NOT NULL, priority integer NOT NULL,
    id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS waiting_in_line ON waiting (queue, priority, ord);
CREATE TABLE IF NOT EXISTS active (
    ord bigint NOT NULL, started_at bigint NOT NULL, renewed_at bigint NOT NULL, lock_until bigint NOT NULL,
    queue integer NOT NULL, priority integer NOT NULL, id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL, worker text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE TABLE IF NOT EXISTS finished (
    seq bigint NOT NULL, finished_at bigint NOT NULL, expires_at bigint NOT NULL, state text NOT NULL,
    queue integer NOT NULL, id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    token text COLLATE "C", worker text COLLATE "C",
    PRIMARY KEY (queue, id)
);
CREATE INDEX IF NOT EXISTS finished_by_time ON finished (queue, state, finished_at, seq);
"""
ADD = """
WITH added AS (
    INSERT INTO job (ord, created_at, queue, priority, id, name, options, data)
    SELECT nextval('job_seq'), 0, 1, 0, given.id, given.name, '{}', given.data
    FROM unnest(%b::text[], %b::text[], %b::text[]) AS given (id, name, data)
    RETURNING ord, queue, priority, id, name
)
INSERT INTO waiting (ord, queue, priority, id, name) SELECT ord, queue, priority, id, name FROM added
"""
SETTLE = """
WITH ended AS (
    DELETE FROM active WHERE queue = 1 AND id = ANY(%b) AND token = 'token'
    RETURNING ord, queue, id, name, token, worker
)
INSERT INTO finished (seq, finished_at, expires_at, state, queue, id, name, token, worker)
SELECT ord, 2, 3, 'completed', queue, id, name, token, worker FROM ended
"""
CLAIM = """
WITH chosen AS MATERIALIZED (
    SELECT ctid FROM waiting WHERE queue = 1 ORDER BY priority, ord LIMIT %s FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM waiting WHERE ctid = ANY(ARRAY(SELECT ctid FROM chosen))
    RETURNING ord, queue, priority, id, name
), locked AS (
    INSERT INTO active (ord, started_at, renewed_at, lock_until, queue, priority, id, name, token, worker)
    SELECT ord, 1, 1, 30001, queue, priority, id, name, 'token', 'worker' FROM taken
)
SELECT job.id, job.name, job.data, job.options FROM taken JOIN job USING (queue, id)
"""


def opened(place):
    connection = psycopg.connect(place, autocommit=True, prepare_threshold=0)
    connection.execute(TABLES, prepare=False)
    return connection


def add(connection, n=1):
    # As long as Ropeway's ids, and as they do, each sorts after the one before.
    now = time.time_ns()
    ids = [f"{number:036d}" for number in range(now, now + n)]
    connection.execute(ADD, (ids, ["noop"] * n, [json.dumps(protocol.PAYLOAD)] * n))


def add_one(place, seconds):
    with opened(place) as connection:
        return protocol.repeat(seconds, lambda: add(connection))


def add_bulk(place, seconds):
    with opened(place) as connection:
        return protocol.repeat(seconds, lambda: add(connection, protocol.BULK), each=protocol.BULK)


def fill(place, n):
    with opened(place) as connection:
        for first in range(0, n, protocol.BULK):
            add(connection, min(protocol.BULK, n - first))
    return {}


def process(place, n, seconds):
    connections = [opened(place) for _ in range(CONNECTIONS)]
    handled = protocol.Handled(n, seconds)

    def work(connection):
        running: list[str] = []
        while not handled.over:
            with connection.pipeline(), connection.transaction():
                connection.execute(SETTLE, (running,))
                claimed = connection.execute(CLAIM, (BATCH,))
            handled.more(len(running))
            running = [id for id, *_ in claimed]

    threads = [threading.Thread(target=work, args=(connection,), daemon=True) for connection in connections]
    for thread in threads:
        thread.start()
    return handled.wait()


if __name__ == "__main__":
    protocol.answer(globals())
