# /// script
# dependencies = ["saq[postgres]==0.26.4", "psycopg[binary]", "typing_extensions", "uvloop"]
#
# [tool.benchmarks]
# title = "SAQ 0.26.4"
# family = "postgres"
# role = "rival"
# durable = true
# backlogs = false
# note = "concurrency 100, 20 connections, as by default"
# jobs = 500
# ///
"""SAQ on PostgreSQL, with its own worker."""

import asyncio
from contextlib import asynccontextmanager

from saq import Queue

from benchmarks import protocol
from benchmarks.systems.saq import working


@asynccontextmanager
async def opened(place):
    queue = Queue.from_url(place)
    await queue.connect()
    yield queue


async def add_one(place, seconds):
    async with opened(place) as queue:
        return await protocol.repeat_async(seconds, lambda: queue.enqueue("noop", data=protocol.PAYLOAD))


async def fill(place, n):
    async with opened(place) as queue:
        for _ in range(0, n, 50):
            await asyncio.gather(*(queue.enqueue("noop", data=protocol.PAYLOAD) for _ in range(50)))
    return {}


async def process(place, n, seconds):
    started = protocol.Started(n)

    async def noop(_, *, data):
        started.one()

    async with opened(place) as queue:
        return await protocol.settled(n, seconds, started, working(queue, noop), lambda: queue.count("incomplete"))


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(_, *, data):
        samples.put_nowait(protocol.since(data))

    async with opened(place) as queue, working(queue, noop):
        return await protocol.latencies_async(seconds, lambda sent: queue.enqueue("noop", data=sent), samples.get)


if __name__ == "__main__":
    protocol.answer(globals())
