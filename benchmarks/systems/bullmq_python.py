# /// script
# dependencies = ["bullmq==3.4.4", "hiredis", "uvloop"]
#
# [tool.benchmarks]
# title = "BullMQ 3.4.4 for Python"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "concurrency 100"
# jobs = 1_500
# ///
"""BullMQ's own package for Python."""

import asyncio

from bullmq import Queue, Worker

from benchmarks import protocol


async def nothing(job, token):
    pass


def open_queue(place):
    return Queue("bench", {"connection": place})


def start(place, function):
    return Worker("bench", function, {"connection": place, "concurrency": 100})


async def add_one(place, seconds):
    queue = open_queue(place)
    return await protocol.repeat_async(seconds, lambda: queue.add("noop", protocol.PAYLOAD))


async def add_bulk(place, seconds):
    jobs = [{"name": "noop", "data": protocol.PAYLOAD}] * protocol.BULK
    queue = open_queue(place)
    return await protocol.repeat_async(seconds, lambda: queue.addBulk(jobs), each=protocol.BULK)


async def fill(place, n):
    queue = open_queue(place)
    for _ in range(0, n, protocol.BULK):
        await queue.addBulk([{"name": "noop", "data": protocol.PAYLOAD}] * min(n, protocol.BULK))
    return {}


async def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)

    async def noop(job, token):
        handled.more()

    start(place, noop)
    return await asyncio.to_thread(handled.wait)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(job, token):
        samples.put_nowait(protocol.since(job.data))

    queue = open_queue(place)
    start(place, noop)
    return await protocol.latencies_async(seconds, lambda sent: queue.add("noop", sent), samples.get)


async def idle(place, seconds):
    start(place, nothing)
    return await asyncio.to_thread(protocol.idle_cost, seconds)


if __name__ == "__main__":
    protocol.answer(globals())
