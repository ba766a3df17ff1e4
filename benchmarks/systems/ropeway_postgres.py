# /// script
# dependencies = ["psycopg[binary]"]
#
# [tool.benchmarks]
# title = "Ropeway"
# family = "postgres"
# role = "ours"
# durable = true
# checkout = true
# note = "as it comes, on asyncio's own loop, concurrency 100"
# jobs = 20_000
# ///
"""Ropeway on PostgreSQL: the same programs as on SQLite."""

from benchmarks import protocol
from benchmarks.systems import ropeway

if __name__ == "__main__":
    protocol.answer(vars(ropeway))
