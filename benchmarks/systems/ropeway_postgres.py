# /// script
# dependencies = ["h11", "jinja2", "jsonschema-rs", "psycopg[binary]", "starlette", "uvicorn", "uvloop"]
#
# [tool.benchmarks]
# title = "Ropeway"
# family = "postgres"
# role = "ours"
# durable = true
# checkout = true
# note = "as it comes, on uvloop, concurrency 100"
# jobs = 20_000
# ///
"""Ropeway on PostgreSQL: the same programs as on SQLite, but processing is timed as that of its rivals here."""

from benchmarks import protocol
from benchmarks.systems import ropeway
from ropeway import Worker


async def process(place, n, seconds):
    return await process_at(place, n, seconds, concurrency=100)


async def process_at(place, n, seconds, concurrency):
    started = protocol.Started(n)

    async def handler(_):
        started.one()

    async def unsettled():
        counts = await queue.counts()
        return counts["waiting"] + counts["active"]

    async with ropeway.open_queue(place) as queue:
        working = Worker(queue, handler, concurrency=concurrency)
        return await protocol.settled(n, seconds, started, working, unsettled)


if __name__ == "__main__":
    protocol.answer({**vars(ropeway), "process": process, "process_at": process_at})
