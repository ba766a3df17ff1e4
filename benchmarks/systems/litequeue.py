# /// script
# dependencies = ["litequeue==0.9"]
#
# [tool.benchmarks]
# title = "litequeue 0.9"
# family = "sqlite"
# role = "rival"
# durable = false
# note = "not durable: sets synchronous=NORMAL itself; slows down with its backlog; no workers: the loop is ours"
# jobs = 1_000
# ///
"""LiteQueue as it comes. One thread pops and marks done: a connection cannot hold two transactions."""

import json
import sqlite3
import time
from queue import SimpleQueue
from threading import Thread

from litequeue import LiteQueue

from benchmarks import protocol

CLONE = """
WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?)
INSERT INTO Queue (data, message_id, status, in_time)
SELECT data, substr(message_id, 1, 24) || format('%012x', n), status, in_time
FROM copy, (SELECT * FROM Queue ORDER BY rowid DESC LIMIT 1)
"""


def open_queue(place):
    return LiteQueue(f"{place}/lite.db")


def add_one(place, seconds):
    queue = open_queue(place)
    return protocol.repeat(seconds, lambda: queue.put(json.dumps(protocol.PAYLOAD)))


def add_bulk(place, seconds):
    queue = open_queue(place)

    def add():
        with queue.transaction():
            for _ in range(protocol.BULK):
                queue.put(json.dumps(protocol.PAYLOAD))

    return protocol.repeat(seconds, add, each=protocol.BULK)


def fill(place, n):
    open_queue(place).put(json.dumps(protocol.PAYLOAD))
    with sqlite3.connect(f"{place}/lite.db") as connection:
        connection.execute(CLONE, (n - 1,))
    return {}


def process(place, n, seconds):
    queue = open_queue(place)
    handled = protocol.Handled(n, seconds)
    while not handled.over:
        message = queue.pop()
        json.loads(message.data)
        queue.done(message.message_id)
        handled.more()
    return handled.rate()


def work(place, handler):
    queue = open_queue(place)
    while True:
        message = queue.pop()
        if message is None:
            time.sleep(protocol.POLL)
        else:
            handler(json.loads(message.data))
            queue.done(message.message_id)


def latency(place, seconds):
    queue = open_queue(place)
    samples: SimpleQueue[float] = SimpleQueue()
    Thread(target=work, args=(place, lambda sent: samples.put(protocol.since(sent))), daemon=True).start()
    return protocol.latencies(seconds, lambda sent: queue.put(json.dumps(sent)), samples.get)


def latency_apart(place, seconds):
    queue = open_queue(place)
    with protocol.beside("listen", place=place) as sample:
        return protocol.latencies(seconds, lambda sent: queue.put(json.dumps(sent)), sample)


def listen(place):
    open_queue(place)
    protocol.tell("ready")
    work(place, lambda sent: protocol.tell(protocol.since(sent)))


def idle(place, seconds):
    Thread(target=work, args=(place, print), daemon=True).start()
    return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
