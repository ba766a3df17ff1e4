# /// script
# [tool.benchmarks]
# title = "bare apsw"
# family = "sqlite"
# role = "limit"
# durable = true
# checkout = true
# note = "the limit: settles 100 and claims 100 per transaction in Ropeway's tables, and does nothing else"
# jobs = 30_000
# ///
"""What SQLite itself can do with Ropeway's tables: the moves, but no events, counters, tokens or retention.

Each statement is the fastest found: one that takes a list or a range beats `executemany`.
"""

import json

from benchmarks import protocol
from ropeway.stores.sqlite.opening import open_file

BATCH = 100
ADD_JOBS = """
INSERT INTO job (seq, queue, id, name, priority, ord, options, created_at, data)
SELECT :first + key, 1, value, 'noop', 0, :first + key, '{}', 0, :data FROM jsonb_each(:ids)
"""
ADD_PLACES = """
INSERT INTO waiting (queue, priority, ord, name)
SELECT queue, priority, ord, name FROM job WHERE seq >= :first
"""
CHOOSE = """
SELECT chosen.priority, chosen.ord, job.id, job.name, job.data, job.options
FROM (SELECT priority, ord FROM waiting WHERE queue = 1 ORDER BY priority, ord LIMIT ?) AS chosen
CROSS JOIN job ON job.seq = chosen.ord
"""
CLAIM = """
INSERT INTO active (
    seq, queue, name, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at, lock_until
)
SELECT ord, queue, name, attempts_made, attempts_started + 1, stalled_count, logged, 'token', 'worker', 1, 1, 30001
FROM waiting
WHERE queue = 1 AND (priority, ord) <= (:priority, :ord)
"""
LEAVE_WAITING = "DELETE FROM waiting WHERE queue = 1 AND (priority, ord) <= (:priority, :ord)"
SETTLE = """
INSERT INTO finished (
    queue, state, finished_at, seq, expires_at, name, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at
)
SELECT
    queue, 'completed', 2, seq, 3, name, attempts_made, attempts_started, stalled_count, logged,
    token, worker, started_at, renewed_at
FROM active
WHERE seq IN (SELECT value FROM json_each(:seqs))
"""
LEAVE_ACTIVE = "DELETE FROM active WHERE seq IN (SELECT value FROM json_each(:seqs))"


def open_bare(place):
    connection = open_file(f"{place}/bare.db")
    connection.pragma("synchronous", "full")
    return connection


def add(connection, n):
    connection.execute("BEGIN IMMEDIATE")
    first = connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM job").get
    # As long as Ropeway's ids, and as they do, each sorts after the one before.
    ids = json.dumps([f"{seq:036d}" for seq in range(first, first + n)])
    values = {"first": first, "ids": ids, "data": json.dumps(protocol.PAYLOAD)}
    connection.execute(ADD_JOBS, values)
    connection.execute(ADD_PLACES, values)
    connection.execute("COMMIT")


def add_one(place, seconds):
    connection = open_bare(place)
    return protocol.repeat(seconds, lambda: add(connection, 1))


def add_bulk(place, seconds):
    connection = open_bare(place)
    return protocol.repeat(seconds, lambda: add(connection, protocol.BULK), each=protocol.BULK)


def fill(place, n):
    add(open_bare(place), n)
    return {}


def process(place, n, seconds):
    connection = open_bare(place)
    handled = protocol.Handled(n, seconds)
    running: list[int] = []
    while not handled.over:
        connection.execute("BEGIN IMMEDIATE")
        ended = {"seqs": json.dumps(running)}
        connection.execute(SETTLE, ended)
        connection.execute(LEAVE_ACTIVE, ended)
        claimed = connection.execute(CHOOSE, (BATCH,)).fetchall()
        if claimed:
            last = {"priority": claimed[-1][0], "ord": claimed[-1][1]}
            connection.execute(CLAIM, last)
            connection.execute(LEAVE_WAITING, last)
        connection.execute("COMMIT")
        handled.more(len(running))
        running = [order for _, order, *_ in claimed]
    return handled.rate()


if __name__ == "__main__":
    protocol.answer(globals())
