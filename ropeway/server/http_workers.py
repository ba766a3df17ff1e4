"""Workers over HTTP as others see them: a record for each while it is heard of, and how long its jobs waited and ran.

They keep no records themselves, as workers in Python do. A worker is there while it waits for jobs, or was heard of
within the lifetime of its record.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

import msgspec

from ..client.workers import WorkerInfo, write_worker
from ..job.instants import Instant, Milliseconds
from ..job.record import JobRecord
from ..store.contract import Store
from ..worker.maintenance.presence import PRESENCE_INTERVAL, PRESENCE_LASTING
from ..worker.observations import Observations
from ..worker.service import Service

MOST_WORKERS: Final = 10_000
"""Beyond them, those that were not heard of for the longest time are forgotten."""
GONE_AFTER: Final = PRESENCE_LASTING / 1000
"""Seconds after which a worker that says nothing is gone."""


class HttpWorker(msgspec.Struct):
    name: str
    host: str
    started_at: Instant
    handlers: dict[str, tuple[str, ...] | None]
    """By queue, the types that it claimed last."""
    count: int = 1
    """Most jobs that it asked for at once."""
    heard: float = 0.0
    """When it last called, on the monotonic clock."""
    claims: int = 0
    """Its claims that wait now."""
    held: dict[tuple[str, str], float] = {}
    """When its locks end, by queue and job."""

    def is_there(self, now: float) -> bool:
        return self.claims > 0 or now - self.heard < GONE_AFTER

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, a claim of the worker waits: it is there, though it says nothing."""
        self.claims += 1
        try:
            yield
        finally:
            self.claims -= 1
            self.heard = monotonic()

    def info(self, now: float) -> WorkerInfo:
        self.held = {key: until for key, until in self.held.items() if until > now}
        running = len(self.held)
        return WorkerInfo(
            self.name,
            self.name,
            self.host,
            0,
            tuple(sorted(self.handlers)),
            self.handlers,
            max(self.count, running),
            running,
            self.started_at,
        )


class HttpWorkers(Service):
    """Writes the records, and refreshes them before they expire."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._workers: OrderedDict[str, HttpWorker] = OrderedDict()
        self.observations: Final = Observations()

    async def claims(self, name: str, host: str, queue: str, types: tuple[str, ...] | None, count: int) -> HttpWorker:
        """A worker asks for jobs; one that is new, or asks for others than before, is visible at once."""
        worker = self._workers.get(name)
        if worker is None or not worker.is_there(monotonic()):
            worker = self._workers[name] = HttpWorker(name, host, await self._store.clock(), {})
            if len(self._workers) > MOST_WORKERS:
                self._workers.popitem(last=False)
        self._workers.move_to_end(name)
        worker.heard, worker.count = monotonic(), max(worker.count, count)
        if worker.handlers.get(queue, ()) != types:
            worker.handlers[queue] = types
            await write_worker(self._store, worker.info(worker.heard), PRESENCE_LASTING)
        return worker

    def took(self, name: str, queue: str, jobs: Sequence[JobRecord], lock: Milliseconds) -> None:
        self.observations.claimed(queue, jobs)
        self.renewed(name, queue, [job.id for job in jobs], lock)

    def renewed(self, name: str, queue: str, ids: Iterable[str], lock: Milliseconds) -> None:
        worker = self._workers.get(name)
        if worker is not None:
            worker.heard = monotonic()
            worker.held |= dict.fromkeys(((queue, id) for id in ids), worker.heard + lock / 1000)

    def ended(self, name: str, queue: str, id: str, began: float | None) -> None:
        """An attempt has ended; `began` is on the monotonic clock, None if that is not known."""
        if began is not None:
            self.observations.ran(queue, monotonic() - began)
        worker = self._workers.get(name)
        if worker is not None:
            worker.heard = monotonic()
            worker.held.pop((queue, id), None)

    async def step(self) -> None:
        await asyncio.sleep(PRESENCE_INTERVAL)
        now = monotonic()
        for name, worker in [*self._workers.items()]:
            if worker.is_there(now):
                await write_worker(self._store, worker.info(now), PRESENCE_LASTING)
            else:
                del self._workers[name]
