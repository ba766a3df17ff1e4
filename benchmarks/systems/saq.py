# /// script
# dependencies = ["saq[redis,hiredis]==0.26.4", "typing_extensions", "uvloop"]
#
# [tool.benchmarks]
# title = "SAQ 0.26.4"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "concurrency 100"
# jobs = 1_500
# ///
"""SAQ with its own worker."""

import asyncio
from contextlib import asynccontextmanager

from saq import Queue, Worker

from benchmarks import protocol


async def nothing(_, *, data):
    pass


@asynccontextmanager
async def working(queue, function):
    worker = Worker(queue, [("noop", function)], concurrency=100)
    # Ended with its loop: a shutdown in good order takes seconds, and is not measured.
    task = asyncio.create_task(worker.start())
    yield task


async def add_one(place, seconds):
    queue = Queue.from_url(place)
    return await protocol.repeat_async(seconds, lambda: queue.enqueue("noop", data=protocol.PAYLOAD))


async def fill(place, n):
    queue = Queue.from_url(place)
    for _ in range(0, n, 50):
        await asyncio.gather(*(queue.enqueue("noop", data=protocol.PAYLOAD) for _ in range(50)))
    return {}


async def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)

    async def noop(_, *, data):
        handled.more()

    async with working(Queue.from_url(place), noop):
        return await asyncio.to_thread(handled.wait)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(_, *, data):
        samples.put_nowait(protocol.since(data))

    queue = Queue.from_url(place)
    async with working(queue, noop):
        return await protocol.latencies_async(seconds, lambda sent: queue.enqueue("noop", data=sent), samples.get)


async def idle(place, seconds):
    async with working(Queue.from_url(place), nothing):
        return await asyncio.to_thread(protocol.idle_cost, seconds)


if __name__ == "__main__":
    protocol.answer(globals())
