# /// script
# dependencies = ["arq==0.28.0", "uvloop"]
#
# [tool.benchmarks]
# title = "arq 0.28.0"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "polls every 10 ms here (0.5 s as it comes), max_jobs 100"
# jobs = 1_000
# ///
"""arq with its own worker."""

import asyncio
from contextlib import asynccontextmanager

from arq import Worker, create_pool, func
from arq.connections import RedisSettings

from benchmarks import protocol


def settings(place):
    return RedisSettings.from_dsn(place)


async def nothing(_, data):
    pass


@asynccontextmanager
async def working(place, function):
    worker = Worker(
        [func(function, name="noop")],
        redis_settings=settings(place),
        max_jobs=100,
        poll_delay=protocol.POLL,
        keep_result=0,
        handle_signals=False,
    )
    # Ended with its loop: a shutdown in good order takes seconds, and is not measured.
    task = asyncio.create_task(worker.async_run())
    yield task


async def add_one(place, seconds):
    redis = await create_pool(settings(place))
    return await protocol.repeat_async(seconds, lambda: redis.enqueue_job("noop", protocol.PAYLOAD))


async def fill(place, n):
    redis = await create_pool(settings(place))
    for _ in range(0, n, 100):
        await asyncio.gather(*(redis.enqueue_job("noop", protocol.PAYLOAD) for _ in range(100)))
    return {}


async def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)

    async def noop(_, data):
        handled.more()

    async with working(place, noop):
        return await asyncio.to_thread(handled.wait)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(_, sent):
        samples.put_nowait(protocol.since(sent))

    redis = await create_pool(settings(place))
    async with working(place, noop):
        return await protocol.latencies_async(seconds, lambda sent: redis.enqueue_job("noop", sent), samples.get)


async def idle(place, seconds):
    async with working(place, nothing):
        return await asyncio.to_thread(protocol.idle_cost, seconds)


if __name__ == "__main__":
    protocol.answer(globals())
