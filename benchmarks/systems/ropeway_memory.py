# /// script
# dependencies = ["uvloop"]
#
# [tool.benchmarks]
# title = "Ropeway"
# family = "memory"
# role = "ours"
# durable = false
# checkout = true
# backlogs = false
# note = "on uvloop, concurrency 100; only what one process measures"
# jobs = 20_000
# ///
"""Ropeway in memory: the same programs as on SQLite, if they need no second process."""

from benchmarks import protocol
from benchmarks.systems import ropeway


async def compare_pipelines(place, **arguments):
    url = "memory://bench"
    # The store exists as long as a handle is open.
    async with ropeway.open_queue(url):
        return await ropeway.compare_pipelines(url, **arguments)


if __name__ == "__main__":
    protocol.answer({"compare_pipelines": compare_pipelines})
