"""The least there is: add jobs, run them, wait for a result."""

from __future__ import annotations

import asyncio

from ropeway import Job, Queue, Worker


async def add(job: Job) -> int:
    return sum(job.data)


async def main() -> None:
    async with Queue("sums", "memory://") as queue, Worker(queue, add):
        job = await queue.add("add", [1, 2, 3])
        print(await job.result(timeout=10))


if __name__ == "__main__":
    asyncio.run(main())
