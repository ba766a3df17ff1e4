# /// script
# dependencies = ["h11", "jinja2", "jsonschema-rs", "redis[hiredis]", "starlette", "uvicorn", "uvloop"]
#
# [tool.benchmarks]
# title = "Ropeway"
# family = "redis"
# role = "ours"
# durable = false
# checkout = true
# note = "as it comes, on uvloop, concurrency 100"
# jobs = 20_000
# ///
"""Ropeway on Redis: the same programs as on SQLite."""

from benchmarks import protocol
from benchmarks.systems import ropeway


async def bytes_per_job(place, n):
    from redis import Redis  # Here, because the other functions do without: what they take in memory is measured.

    with Redis.from_url(place) as client:
        before = client.info("memory")["used_memory"]
        await ropeway.fill(place, n)
        return {"bytes": (client.info("memory")["used_memory"] - before) / n}


if __name__ == "__main__":
    protocol.answer({**vars(ropeway), "bytes_per_job": bytes_per_job})
