# /// script
# dependencies = ["taskiq-redis==1.2.4", "hiredis", "uvloop"]
#
# [tool.benchmarks]
# title = "Taskiq 0.13"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "RedisStreamBroker, which acknowledges; 100 tasks at once"
# jobs = 2_000
# ///
"""Taskiq on Redis streams, with its own receiver."""

import asyncio
from contextlib import asynccontextmanager

from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from benchmarks import protocol


async def nothing(data):
    pass


async def open_task(place, function):
    broker = RedisStreamBroker(place)
    task = broker.register_task(function, task_name="noop")
    await broker.startup()
    return broker, task


@asynccontextmanager
async def working(broker):
    task = asyncio.create_task(run_receiver_task(broker, max_async_tasks=100))
    yield task


async def add_one(place, seconds):
    _, noop = await open_task(place, nothing)
    return await protocol.repeat_async(seconds, lambda: noop.kiq(protocol.PAYLOAD))


async def fill(place, n):
    _, noop = await open_task(place, nothing)
    for _ in range(0, n, 50):
        await asyncio.gather(*(noop.kiq(protocol.PAYLOAD) for _ in range(50)))
    return {}


async def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)

    async def noop(data):
        handled.more()

    broker, _ = await open_task(place, noop)
    async with working(broker):
        return await asyncio.to_thread(handled.wait)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(sent):
        samples.put_nowait(protocol.since(sent))

    broker, task = await open_task(place, noop)
    async with working(broker):
        return await protocol.latencies_async(seconds, task.kiq, samples.get)


async def idle(place, seconds):
    broker, _ = await open_task(place, nothing)
    async with working(broker):
        return await asyncio.to_thread(protocol.idle_cost, seconds)


if __name__ == "__main__":
    protocol.answer(globals())
