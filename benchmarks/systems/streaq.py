# /// script
# dependencies = ["streaq==7.2.0", "uvloop"]
#
# [tool.benchmarks]
# title = "streaq 7.2.0"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "concurrency 100"
# jobs = 900
# ///
"""streaq with its own worker."""

import asyncio
from contextlib import asynccontextmanager

from streaq import Worker

from benchmarks import protocol


async def nothing(data):
    pass


def open_task(place, function):
    worker = Worker(redis_url=place, concurrency=100, handle_signals=False)
    return worker, worker.task(name="noop")(function)


class Status:
    """What the worker tells that it has started."""

    def __init__(self):
        self.ready = asyncio.Event()

    def started(self, _=None):
        self.ready.set()


@asynccontextmanager
async def working(worker):
    status = Status()
    task = asyncio.create_task(worker.run_async(task_status=status))
    await status.ready.wait()
    yield task


async def add_one(place, seconds):
    worker, noop = open_task(place, nothing)
    async with worker:
        return await protocol.repeat_async(seconds, lambda: noop.enqueue(protocol.PAYLOAD))


async def add_bulk(place, seconds):
    worker, noop = open_task(place, nothing)
    async with worker:
        return await protocol.repeat_async(
            seconds,
            lambda: worker.enqueue_many([noop.enqueue(protocol.PAYLOAD) for _ in range(protocol.BULK)]),
            each=protocol.BULK,
        )


async def fill(place, n):
    worker, noop = open_task(place, nothing)
    async with worker:
        for _ in range(0, n, protocol.BULK):
            await worker.enqueue_many([noop.enqueue(protocol.PAYLOAD) for _ in range(min(n, protocol.BULK))])
    return {}


async def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)

    async def noop(data):
        handled.more()

    worker, _ = open_task(place, noop)
    async with working(worker):
        return await asyncio.to_thread(handled.wait)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(sent):
        samples.put_nowait(protocol.since(sent))

    worker, task = open_task(place, noop)
    async with working(worker):
        return await protocol.latencies_async(seconds, task.enqueue, samples.get)


async def idle(place, seconds):
    worker, _ = open_task(place, nothing)
    async with working(worker):
        return await asyncio.to_thread(protocol.idle_cost, seconds)


if __name__ == "__main__":
    protocol.answer(globals())
