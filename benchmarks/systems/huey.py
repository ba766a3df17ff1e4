# /// script
# dependencies = ["huey==3.5.4", "uvloop"]
#
# [tool.benchmarks]
# title = "huey 3.5.4"
# family = "sqlite"
# role = "rival"
# durable = true
# note = "deletes a job as it claims it: a crash loses the job; adds one at a time only"
# jobs = 2_500
# ///
"""SqliteHuey with fsync, and its own consumer."""

import asyncio
import sqlite3
from contextlib import contextmanager
from queue import SimpleQueue

from huey import SqliteHuey
from huey.consumer import Consumer

from benchmarks import protocol

WORKERS = 1
"""Threads; 2, 4 and 16 were a quarter slower, since all share one connection."""

CLONE = """
WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?)
INSERT INTO task (queue, data, priority)
SELECT queue, data, iif(?, abs(random()) % 1000, priority)
FROM copy, (SELECT * FROM task ORDER BY id DESC LIMIT 1)
"""


def nothing(data):
    pass


def open_task(place, function):
    huey = SqliteHuey("bench", filename=f"{place}/huey.db", fsync=True)
    return huey, huey.task(name="noop")(function)


def open_consumer(huey):
    wait = {"initial_delay": protocol.POLL, "max_delay": protocol.POLL}
    return Consumer(huey, workers=WORKERS, periodic=False, **wait)


@contextmanager
def working(huey):
    consumer = open_consumer(huey)
    consumer.start()
    yield
    consumer.stop(graceful=True)


def add_one(place, seconds):
    _, noop = open_task(place, nothing)
    return protocol.repeat(seconds, lambda: noop(protocol.PAYLOAD))


async def add_one_by_thread(place, seconds):
    _, noop = open_task(place, nothing)
    return await protocol.repeat_async(seconds, lambda: asyncio.to_thread(noop, protocol.PAYLOAD))


def add_one_beside(place, seconds):
    with protocol.beside("work", place=place):
        return add_one(place, seconds)


def work(place):
    huey, _ = open_task(place, nothing)
    protocol.tell("ready")
    open_consumer(huey).run()


def fill(place, n, priorities=False):
    _, noop = open_task(place, nothing)
    noop(protocol.PAYLOAD)
    with sqlite3.connect(f"{place}/huey.db") as connection:
        connection.execute(CLONE, (n - 1, priorities))
    return {}


def fill_prioritized(place, n):
    return fill(place, n, priorities=True)


def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)
    huey, _ = open_task(place, lambda _: handled.more())
    with working(huey):
        return handled.wait()


def latency(place, seconds):
    samples: SimpleQueue[float] = SimpleQueue()
    huey, noop = open_task(place, lambda sent: samples.put(protocol.since(sent)))
    with working(huey):
        return protocol.latencies(seconds, noop, samples.get)


def latency_apart(place, seconds):
    _, noop = open_task(place, nothing)
    with protocol.beside("listen", place=place) as sample:
        return protocol.latencies(seconds, noop, sample)


def listen(place):
    huey, _ = open_task(place, lambda sent: protocol.tell(protocol.since(sent)))
    protocol.tell("ready")
    open_consumer(huey).run()


def idle(place, seconds):
    huey, _ = open_task(place, nothing)
    with working(huey):
        return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
