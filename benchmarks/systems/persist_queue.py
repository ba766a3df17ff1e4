# /// script
# dependencies = ["persist-queue==1.1.0", "uvloop"]
#
# [tool.benchmarks]
# title = "persist-queue 1.1.0"
# family = "sqlite"
# role = "rival"
# durable = true
# note = "a queue without workers: the loop is ours; one consuming process; adds one at a time only"
# jobs = 1_500
# ///
"""SQLiteAckQueue as it comes: WAL and SQLite's default, synchronous=FULL.

One thread takes and acknowledges: more only wait for the queue's locks (4 threads were no faster).
"""

import asyncio
import sqlite3
import sys
import time
from queue import SimpleQueue
from threading import Thread

from persistqueue import Empty, SQLiteAckQueue

from benchmarks import protocol

CLEAR_EVERY = 200
"""Acknowledged jobs to keep: each look for the next job reads past all of them."""

CLONE = """
WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?)
INSERT INTO ack_queue_default (data, timestamp, status)
SELECT data, timestamp, status FROM copy, (SELECT * FROM ack_queue_default ORDER BY _id DESC LIMIT 1)
"""


def open_queue(place):
    return SQLiteAckQueue(place, multithreading=True)


def add_one(place, seconds):
    queue = open_queue(place)
    return protocol.repeat(seconds, lambda: queue.put(protocol.PAYLOAD))


async def add_one_by_thread(place, seconds):
    queue = open_queue(place)
    return await protocol.repeat_async(seconds, lambda: asyncio.to_thread(queue.put, protocol.PAYLOAD))


def add_one_beside(place, seconds):
    with protocol.beside("work_off", place=place):
        return add_one(place, seconds)


def work_off(place):
    protocol.tell("ready")
    process(place, sys.maxsize, sys.maxsize)


def fill(place, n):
    open_queue(place).put(protocol.PAYLOAD)
    with sqlite3.connect(f"{place}/data.db") as connection:
        connection.execute(CLONE, (n - 1,))
    return {}


def process(place, n, seconds):
    queue = open_queue(place)
    handled = protocol.Handled(n, seconds)
    while not handled.over:
        item = queue.get(raw=True)
        queue.ack(id=item["pqid"])
        handled.more()
        if handled.count % CLEAR_EVERY == 0:
            queue.clear_acked_data(max_delete=CLEAR_EVERY, keep_latest=0)
    return handled.rate()


def work(queue, handler, wait):
    """Inside one process the queue wakes its reader; between two it has to look again and again."""
    while True:
        try:
            item = queue.get(block=wait, raw=True)
        except Empty:
            time.sleep(protocol.POLL)
        else:
            handler(item["data"])
            queue.ack(id=item["pqid"])


def latency(place, seconds):
    queue = open_queue(place)
    samples: SimpleQueue[float] = SimpleQueue()
    handler = lambda sent: samples.put(protocol.since(sent))  # noqa: E731
    Thread(target=work, args=(queue, handler, True), daemon=True).start()
    return protocol.latencies(seconds, queue.put, samples.get)


def latency_apart(place, seconds):
    queue = open_queue(place)
    with protocol.beside("listen", place=place) as sample:
        return protocol.latencies(seconds, queue.put, sample)


def listen(place):
    queue = open_queue(place)
    protocol.tell("ready")
    work(queue, lambda sent: protocol.tell(protocol.since(sent)), False)


def idle(place, seconds):
    Thread(target=work, args=(open_queue(place), print, False), daemon=True).start()
    return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
