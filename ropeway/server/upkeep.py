"""Upkeep of the queues whose jobs are claimed over HTTP: lapsed heartbeats, delays, retention, schedules and timings.

Where all workers are programs of other languages, nothing else ticks a queue. Which queues these are is remembered in
the store, so that a broker that starts again looks after the jobs of those that it finds there.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from ..errors import RopewayError
from ..job.options import MOST_ATTEMPTS
from ..logger import log
from ..store.contract import Store
from ..store.values import Record, StallRules, Ticked
from ..worker.maintenance.ticker import Ticker
from ..worker.maintenance.timekeeper import Timekeeper
from ..worker.service import Service, Services
from .http_workers import HttpWorkers
from .limits import Limits
from .store_watch import StoreWatch

BROKER_RECORDS: Final = "broker-queue"
PAUSE: Final = 5.0
"""Seconds between tries to begin, and most seconds between two ticks."""
RULES: Final = StallRules(max_stalled_count=MOST_ATTEMPTS, counts_as_attempt=True)
"""A lapsed heartbeat uses an attempt, and attempts are the only budget."""


class Upkeep:
    def __init__(self, store: Store, limits: Limits, workers: HttpWorkers, watch: StoreWatch) -> None:
        self._store = store
        self._limits = limits
        self._workers = workers
        self._watch = watch
        self.queues: set[str] = set()
        """Those that it looks after."""
        self._services = Services([workers, watch])
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._running is None:
            self._running = asyncio.create_task(self._run(), name="ropeway-upkeep")

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            with suppress(RopewayError):
                for queue in self.queues:
                    await self._timekeeper(queue).write()

    async def include(self, queue: str) -> None:
        """Looks after a queue from now on, also after a restart."""
        if queue not in self.queues:
            await self._store.remember(Record(BROKER_RECORDS, queue, "{}"))
            self._begin(queue)

    def _begin(self, queue: str) -> None:
        if queue not in self.queues:
            self.queues.add(queue)
            self._services.add(self._of(queue))

    def _of(self, queue: str) -> list[Service]:
        return [self._ticker(queue), self._timekeeper(queue)]

    def _ticker(self, queue: str) -> Ticker:
        return Ticker(self._store, queue, RULES, min(PAUSE, self._limits.timeout / 2), self._report)

    def _timekeeper(self, queue: str) -> Timekeeper:
        return Timekeeper(self._store, queue, self._workers.observations)

    async def _run(self) -> None:
        while True:
            try:
                for record in await self._store.recall(BROKER_RECORDS):
                    self._begin(record.key)
                await self._services.run()
            except RopewayError as error:
                log.error("upkeep of queues stopped, and begins again in %g s: %s", PAUSE, error)
            await asyncio.sleep(PAUSE)
            self._services = Services(
                [self._workers, self._watch, *(service for queue in self.queues for service in self._of(queue))]
            )

    def _report(self, queue: str, ticked: Ticked) -> None:
        for id in ticked.stalled:
            log.warning("the heartbeat of %s in %r lapsed: it waits again", id, queue)
        for id in ticked.given_up:
            log.error("the heartbeat of %s in %r lapsed, and its attempts are used up", id, queue)
