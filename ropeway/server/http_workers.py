"""Workers over HTTP as others see them: a record for each while it is heard of, and how long its jobs waited and ran.

They keep no records themselves, as workers in Python do. A worker is there while it waits for jobs, or was heard of
within the lifetime of its record. The server obeys orders in its place: a paused or drained worker gets no jobs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

import msgspec

from ..client.workers import WorkerInfo, WorkerOrder, read_orders, write_worker
from ..job.instants import Instant, Milliseconds
from ..job.record import JobRecord
from ..store.commands import Claim, Withdraw
from ..store.contract import Store
from ..worker.maintenance.presence import ORDERS_INTERVAL, PRESENCE_INTERVAL, PRESENCE_LASTING
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
    claims: list[Claim] = []
    """Those that wait now."""
    held: dict[tuple[str, str], float] = {}
    """When its locks end, by queue and job."""
    paused: bool = False
    draining: bool = False
    obeyed: str = ""
    """The id of the last order to it."""
    write_at: float = 0.0
    """When its record is written again."""

    def is_there(self, now: float) -> bool:
        return bool(self.claims) or now - self.heard < GONE_AFTER

    @contextmanager
    def waiting(self, claim: Claim) -> Iterator[None]:
        """Inside, a claim of the worker waits: it is there, though it says nothing."""
        self.claims.append(claim)
        try:
            yield
        finally:
            self.claims.remove(claim)
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
            self.paused,
            draining=self.draining,
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
            await self._write(worker)
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
        await asyncio.sleep(ORDERS_INTERVAL)
        orders = await read_orders(self._store) if self._workers else {}
        for name, worker in [*self._workers.items()]:
            now = monotonic()
            if not worker.is_there(now):
                del self._workers[name]
                continue
            order = orders.get(name)
            if order is not None and order.id != worker.obeyed and order.is_for(worker.info(now)):
                await self._obey(worker, order)
            elif now >= worker.write_at:
                await self._write(worker)

    async def _obey(self, worker: HttpWorker, order: WorkerOrder) -> None:
        worker.obeyed = order.id
        worker.paused, worker.draining = order.order != "resume", order.order == "drain"
        await self._write(worker)
        if worker.paused:
            for claim in [*worker.claims]:
                await self._store.do(Withdraw(claim.queue, claim.worker, claim.token))

    async def _write(self, worker: HttpWorker) -> None:
        now = monotonic()
        await write_worker(self._store, worker.info(now), PRESENCE_LASTING)
        worker.write_at = now + PRESENCE_INTERVAL
