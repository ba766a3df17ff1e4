# /// script
# dependencies = ["procrastinate==3.10.0", "psycopg[binary]", "uvloop"]
#
# [tool.benchmarks]
# title = "procrastinate 3.10.0"
# family = "postgres"
# role = "rival"
# durable = true
# backlogs = false
# note = "concurrency 100, 10 connections; finished jobs are kept, as by default"
# jobs = 500
# ///
"""procrastinate on psycopg, with its own worker."""

import asyncio
from contextlib import asynccontextmanager

from procrastinate import App, PsycopgConnector

from benchmarks import protocol

UNSETTLED = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"


async def nothing(data):
    pass


@asynccontextmanager
async def opened(place, function=nothing):
    app = App(connector=PsycopgConnector(conninfo=place, max_size=10))
    task = app.task(function, name="noop")
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        yield app, task


@asynccontextmanager
async def working(app):
    # Ended with its loop: a shutdown in good order is not measured.
    yield asyncio.create_task(app.run_worker_async(concurrency=100, install_signal_handlers=False))


async def add_one(place, seconds):
    async with opened(place) as (_, noop):
        return await protocol.repeat_async(seconds, lambda: noop.defer_async(data=protocol.PAYLOAD))


async def add_bulk(place, seconds):
    jobs = [{"data": protocol.PAYLOAD}] * protocol.BULK
    async with opened(place) as (_, noop):
        return await protocol.repeat_async(seconds, lambda: noop.batch_defer_async(*jobs), each=protocol.BULK)


async def fill(place, n):
    jobs = [{"data": protocol.PAYLOAD}] * n
    async with opened(place) as (_, noop):
        for first in range(0, n, protocol.BULK):
            await noop.batch_defer_async(*jobs[first : first + protocol.BULK])
    return {}


async def process(place, n, seconds):
    started = protocol.Started(n)

    async def noop(data):
        started.one()

    async with opened(place, noop) as (app, _):

        async def unsettled():
            return (await app.connector.execute_query_one_async(UNSETTLED))["n"]

        return await protocol.settled(n, seconds, started, working(app), unsettled)


async def latency(place, seconds):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def noop(data):
        samples.put_nowait(protocol.since(data))

    async with opened(place, noop) as (app, task), working(app):
        return await protocol.latencies_async(seconds, lambda sent: task.defer_async(data=sent), samples.get)


if __name__ == "__main__":
    protocol.answer(globals())
