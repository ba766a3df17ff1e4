# /// script
# dependencies = ["pgqueuer[asyncpg]==1.6.0", "uvloop"]
#
# [tool.benchmarks]
# title = "pgqueuer 1.6.0"
# family = "postgres"
# role = "rival"
# durable = true
# backlogs = false
# note = "on uvloop, as its command runs it, and one asyncpg connection, which beat a pool; 100 at once"
# jobs = 10_000
# ///
"""pgqueuer on asyncpg, with its own manager."""

import asyncio
import json
from contextlib import asynccontextmanager

import asyncpg
from pgqueuer import AsyncpgDriver, Queries, QueueManager

from benchmarks import protocol

PAYLOAD = json.dumps(protocol.PAYLOAD).encode()
CONCURRENCY = 100


@asynccontextmanager
async def opened(place):
    queries = Queries(AsyncpgDriver(await asyncpg.connect(place)))
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    yield queries


@asynccontextmanager
async def working(queries, function):
    manager = QueueManager(queries)
    manager.entrypoint("noop")(function)
    yield asyncio.create_task(manager.run(batch_size=CONCURRENCY // 2, max_concurrent_tasks=CONCURRENCY))


async def add_one(place, seconds):
    async with opened(place) as queries:
        return await protocol.repeat_async(seconds, lambda: queries.enqueue("noop", PAYLOAD))


def add_many(queries, n=protocol.BULK):
    return queries.enqueue(["noop"] * n, [PAYLOAD] * n, [0] * n)


async def add_bulk(place, seconds):
    async with opened(place) as queries:
        return await protocol.repeat_async(seconds, lambda: add_many(queries), each=protocol.BULK)


async def fill(place, n):
    async with opened(place) as queries:
        for first in range(0, n, protocol.BULK):
            await add_many(queries, min(protocol.BULK, n - first))
    return {}


async def process(place, n, seconds):
    started = protocol.Started(n)

    async def noop(job):
        started.one()

    async with opened(place) as queries:

        async def unsettled():
            # A settled job has left the table.
            rows = await queries.driver.fetch("SELECT count(*) AS n FROM pgqueuer")
            return rows[0]["n"]

        return await protocol.settled(n, seconds, started, working(queries, noop), unsettled)


async def latency(place, seconds, watch=protocol.latencies_async):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(job):
        samples.put_nowait(protocol.since(int(job.payload)))

    async with opened(place) as queries, working(queries, noop):
        return await watch(seconds, lambda sent: queries.enqueue("noop", str(sent).encode()), samples.get)


async def latency_paced(place, seconds):
    return await latency(place, seconds, protocol.paced_async)


if __name__ == "__main__":
    protocol.answer(globals())
