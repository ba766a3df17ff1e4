"""Ways to wait for what a worker does."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import suppress
from typing import Any, Final

from ropeway import Event, Job, JobHandle, Queue, Worker, WorkerEvent
from tests.patience import PATIENCE

TROUBLE: Final = ("lock-lost", "stalled", "cancelled", "failed")
"""What a worker says of jobs that it could not bring to their end."""


class Ear:
    """Hears events of a worker, and lets a test wait for them."""

    def __init__(self, worker: Worker, *names: str) -> None:
        self.events: list[WorkerEvent] = []
        self._news = asyncio.Event()
        for name in names:
            worker.on(name, self._hear)

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]

    async def hear(self, name: str, count: int = 1) -> WorkerEvent:
        """The event of that name, or the last of so many of them, as soon as it has come."""
        async with asyncio.timeout(PATIENCE):
            while True:
                heard = [event for event in self.events if event.name == name]
                if len(heard) >= count:
                    return heard[count - 1]
                self._news.clear()
                await self._news.wait()

    def _hear(self, event: WorkerEvent) -> None:
        self.events.append(event)
        self._news.set()


async def told(queue: Queue, name: str, job: JobHandle | None = None, count: int = 1) -> Event:
    """The event of that name in the queue's stream, or the last of so many, as soon as it has come."""
    async with asyncio.timeout(PATIENCE):
        async for event in queue.events("start"):
            if event.name == name and job is not None and event.job_id != job.id:
                continue
            count -= event.name == name
            if count == 0:
                return event
    raise AssertionError("the stream of events ended")


async def entered(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE)


class Counting:
    """A handler that answers its job's data, and counts how often it ran for each."""

    def __init__(self) -> None:
        self.runs: Counter[Any] = Counter()
        self._news = asyncio.Event()

    async def __call__(self, job: Job) -> Any:
        self.runs[job.data] += 1
        self._news.set()
        await asyncio.sleep(0)
        return job.data

    async def more(self) -> None:
        """Waits for the next run, or a moment if that was the last."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._news.wait()


class Gate:
    """A handler that says when it runs, and runs until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.running: list[Any] = []
        self.most = 0
        self.runs = 0
        self._news = asyncio.Event()

    async def __call__(self, job: Job) -> str:
        self.running.append(job.data)
        self.runs += 1
        self.most = max(self.most, len(self.running))
        self.entered.set()
        self._news.set()
        try:
            await self.opened.wait()
        finally:
            self.running.remove(job.data)
            self._news.set()
        return "done"

    async def holds(self, count: int) -> None:
        """Returns when so many handlers are in it."""
        async with asyncio.timeout(PATIENCE):
            while len(self.running) != count:
                self._news.clear()
                await self._news.wait()


class ThreadGate:
    """The same for a handler in a thread, which can be told to stop but not made to."""

    def __init__(self, *, heeds: bool = True) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.saw_cancelled = False
        self._heeds = heeds

    def __call__(self, job: Any) -> str:
        self.entered.set()
        while not self.opened.wait(0.01):
            if job.cancelled:
                self.saw_cancelled = True
                if self._heeds:
                    raise RuntimeError("told to stop")
        return "done"

    async def enter(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, PATIENCE)
