# /// script
# dependencies = ["chancy==0.26.0", "psycopg[binary]", "uvloop"]
#
# [tool.benchmarks]
# title = "chancy 0.26.0"
# family = "postgres"
# role = "rival"
# durable = true
# backlogs = false
# note = "AsyncExecutor, concurrency 100, eager polling; outcomes are written every 0.1 s, by default every 1 s"
# jobs = 1_500
# ///
"""chancy with its own worker."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager

from chancy import Chancy, Job, Queue, Worker

from benchmarks import protocol

UNSETTLED = "SELECT count(*) FROM chancy_jobs WHERE state IN ('pending', 'running', 'retrying')"

# A job's function is found again by its name, so it cannot be a closure: what it does is put here.
handlers: dict[str, Callable[[object], object]] = {}


async def noop(*, data):
    handlers["noop"](data)


@asynccontextmanager
async def opened(place):
    async with Chancy(place) as chancy:
        await chancy.migrate()
        await chancy.declare(
            Queue("default", concurrency=100, executor=Chancy.Executor.Async, eager_polling=True), upsert=True
        )
        yield chancy


@asynccontextmanager
async def working(chancy, function):
    handlers["noop"] = function
    worker = Worker(chancy, register_signal_handlers=False)
    worker.send_outgoing_interval = 0.1
    await worker.start()
    yield worker


def job(data=protocol.PAYLOAD):
    return Job.from_func(noop).with_kwargs(data=data)


async def push_many(chancy, n):
    async for _ in chancy.push_many([job()] * n):
        pass


async def add_one(place, seconds):
    async with opened(place) as chancy:
        return await protocol.repeat_async(seconds, lambda: chancy.push(job()))


async def add_bulk(place, seconds):
    async with opened(place) as chancy:
        return await protocol.repeat_async(seconds, lambda: push_many(chancy, protocol.BULK), each=protocol.BULK)


async def fill(place, n):
    async with opened(place) as chancy:
        await push_many(chancy, n)
    return {}


async def process(place, n, seconds):
    started = protocol.Started(n)
    async with opened(place) as chancy:

        async def unsettled():
            async with chancy.pool.connection() as connection:
                return (await (await connection.execute(UNSETTLED)).fetchone())[0]

        return await protocol.settled(n, seconds, started, working(chancy, lambda _: started.one()), unsettled)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    def heard(sent):
        samples.put_nowait(protocol.since(sent))

    async with opened(place) as chancy, working(chancy, heard):
        return await protocol.latencies_async(seconds, lambda sent: chancy.push(job(sent)), samples.get)


if __name__ == "__main__":
    protocol.answer(globals())
