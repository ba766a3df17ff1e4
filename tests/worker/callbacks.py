"""A handler, and callbacks of retention, for tests."""

from __future__ import annotations

import asyncio

from ropeway import Job, RetiredJob
from tests.patience import PATIENCE


async def handle(job: Job) -> str:
    if job.name == "fail":
        raise ValueError("no luck")
    return f"sent to {job.data}"


class Callback:
    """Records what it is called with; fails at first as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls = 0
        self.jobs: asyncio.Queue[RetiredJob] = asyncio.Queue()

    async def __call__(self, job: RetiredJob) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            raise ValueError("not now")
        self.jobs.put_nowait(job)

    async def next(self) -> RetiredJob:
        async with asyncio.timeout(PATIENCE):
            return await self.jobs.get()
