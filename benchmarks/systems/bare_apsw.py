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

Each statement is the fastest found: one insert from JSON beats `executemany`; for updates it is the reverse.
"""

import json

from benchmarks import protocol
from ropeway.stores.sqlite.opening import open_file

BATCH = 100
ADD_JOBS = """
INSERT INTO job (seq, queue, id, name, options, created_at, data)
SELECT :first + key, 1, value, 'noop', '{}', 0, :data FROM jsonb_each(:ids)
"""
ADD_PLACES = """
INSERT INTO place (seq, queue, name, state, priority, ord)
SELECT seq, queue, name, 'waiting', 0, seq FROM job WHERE seq >= :first
"""
CHOOSE = """
SELECT job.seq, job.id, job.name, job.data, job.options
FROM (SELECT seq FROM place WHERE queue = 1 AND state = 'waiting' ORDER BY priority, ord LIMIT ?) AS chosen
CROSS JOIN job ON job.seq = chosen.seq
"""
CLAIM = """
UPDATE place SET state = 'active', attempts_started = attempts_started + 1, token = 'token', worker = 'worker',
    started_at = 1, renewed_at = 1, lock_until = 30001
WHERE seq = ?
"""
SETTLE = "UPDATE place SET state = 'completed', lock_until = NULL, finished_at = 2, expires_at = 3 WHERE seq = ?"


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
    settled: list[tuple[int]] = []
    while not handled.over:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(SETTLE, settled)
        claimed = connection.execute(CHOOSE, (BATCH,)).fetchall()
        number, settled = len(settled), [(seq,) for seq, *_ in claimed]
        connection.executemany(CLAIM, settled)
        connection.execute("COMMIT")
        handled.more(number)
    return handled.rate()


if __name__ == "__main__":
    protocol.answer(globals())
