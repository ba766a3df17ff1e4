"""Jobs with steps, and functions for them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ropeway import Job, Queue, Unrecoverable, Worker
from tests.patience import PATIENCE


async def echo(job: Job) -> Any:
    if job.data == "bad":
        raise Unrecoverable("no luck")
    return job.data


async def run(queue: Queue, handler: Any, data: Any = None, **options: Any) -> Any:
    async with Worker(queue, {"work": handler, "echo": echo}):
        job = await queue.add("work", data, **options)
        return await job.result(timeout=PATIENCE)


class Calls:
    """A function that notes its calls; those of `failing` fail once each."""

    def __init__(self, *failing: Any) -> None:
        self.seen: Counter[Any] = Counter()
        self.failing = list(failing)

    async def __call__(self, value: Any = None) -> Any:
        self.seen[value] += 1
        if value in self.failing:
            self.failing.remove(value)
            raise RuntimeError(f"{value} failed")
        return value
