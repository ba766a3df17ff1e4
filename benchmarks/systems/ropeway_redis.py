# /// script
# dependencies = ["hiredis"]
#
# [tool.benchmarks]
# title = "Ropeway"
# family = "redis"
# role = "ours"
# durable = false
# checkout = true
# note = "as it comes, on asyncio's own loop, concurrency 100"
# jobs = 20_000
# ///
"""Ropeway on Redis: the same programs as on SQLite."""

from benchmarks import protocol
from benchmarks.systems import ropeway

if __name__ == "__main__":
    protocol.answer(vars(ropeway))
