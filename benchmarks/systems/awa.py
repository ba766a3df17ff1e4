# /// script
# dependencies = ["awa-pg==0.6.9", "uvloop"]
#
# [tool.benchmarks]
# title = "awa 0.6.9"
# family = "postgres"
# role = "rival"
# durable = true
# backlogs = false
# note = "500 at once, claimed by 512: three times as fast as 100; 20 connections, polls every 10 ms"
# jobs = 5_000
# ///
"""awa with its own worker, which claims and settles in Rust and handles in Python.

Four claimers at concurrency 100 gave a third more than one; 500 at once gave three times as much.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

import awa

from benchmarks import protocol

QUEUE = {"name": "default", "max_workers": 500, "claim_batch_size": 512}
# Asked for its own statistics it takes up to a second, which would be part of what is timed.
SETTLED = """
SELECT (coalesce((SELECT sum(completed_count) FROM awa.receipt_completion_batches), 0)
    + coalesce((SELECT sum(pruned_completed_count) FROM awa.queue_terminal_rollups), 0))::bigint AS n
"""


@dataclass
class Noop:
    data: object


@asynccontextmanager
async def opened(place):
    client = awa.AsyncClient(place, max_connections=20)
    await client.migrate()
    # Its newer tables: those that it was the fastest with, and that take bulks by COPY.
    await client.install_queue_storage()
    yield client
    # Its connections' threads outlive the loop otherwise.
    await client.close()


@asynccontextmanager
async def working(client, function):
    async def handle(job):
        function(job.args.data)

    client.task(Noop)(handle)
    await client.start([QUEUE], poll_interval_ms=int(1_000 * protocol.POLL))
    yield
    await client.shutdown()


async def add_one(place, seconds):
    async with opened(place) as client:
        return await protocol.repeat_async(seconds, lambda: client.insert(Noop(protocol.PAYLOAD)))


async def add_concurrent(place, seconds):
    async with opened(place) as client:
        return await protocol.repeat_at_once(seconds, lambda: client.insert(Noop(protocol.PAYLOAD)))


def add_many(client, n=protocol.BULK):
    return client.enqueue_many_copy([Noop(protocol.PAYLOAD)] * n)


async def add_bulk(place, seconds):
    async with opened(place) as client:
        return await protocol.repeat_async(seconds, lambda: add_many(client), each=protocol.BULK)


async def fill(place, n):
    async with opened(place) as client:
        for first in range(0, n, protocol.BULK):
            await add_many(client, min(protocol.BULK, n - first))
    return {}


async def process(place, n, seconds):
    started = protocol.Started(n)
    async with opened(place) as client:

        async def unsettled():
            async with await client.transaction() as transaction:
                return -(await transaction.fetch_one(SETTLED))["n"]

        return await protocol.settled(n, seconds, started, working(client, lambda _: started.one()), unsettled)


async def latency(place, seconds, watch=protocol.latencies_async):
    samples: asyncio.Queue[float] = asyncio.Queue()

    def heard(sent):
        samples.put_nowait(protocol.since(sent))

    async with opened(place) as client, working(client, heard):
        return await watch(seconds, lambda sent: client.insert(Noop(sent)), samples.get)


async def latency_paced(place, seconds):
    return await latency(place, seconds, protocol.paced_async)


if __name__ == "__main__":
    protocol.answer(globals())
