"""Reading all that the live view shows from a store."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...client.workers import WorkerInfo, known_queues, read_workers
from ...errors import RopewayError, StoreMissing
from ...job.instants import Instant
from ...store.contract import Store
from ...store.url import connect
from .picture import Picture, WorkerPicture
from .watching import EVENTS, FAILURES, QueueWatch

WATCHED: Final = 50
"""Most queues that are watched: each costs a read per interval."""


class Gatherer:
    """Reads a store once per interval. After an error it connects again, without creating a missing store."""

    def __init__(self, url: str | None, queues: Sequence[str] = (), step: float = 0.0) -> None:
        self._url = url
        self._asked = list(dict.fromkeys(queues))
        self._step = step
        self._store: Store | None = None
        self._watches: dict[str, QueueWatch] = {}
        self._has_looked = False

    async def look(self) -> Picture:
        if self._store is None:
            self._store = connect(self._url, create=False)
        url = self._store.url
        try:
            return await self._look(self._store)
        except StoreMissing:
            await self.close()
            if self._watches:
                # It existed before, with queues.
                raise
            # Shown as empty, until the first job is added.
            self._has_looked = True
            return self._picture(url, time.time_ns() // 1_000_000, [], 0, [])
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with contextlib.suppress(RopewayError):
                await store.close()

    async def _look(self, store: Store) -> Picture:
        workers = await read_workers(store)
        known = await known_queues(store, workers)
        wanted = [queue for queue in known if queue in self._asked] if self._asked else known
        names = wanted[:WATCHED]
        self._watches = {name: self._watches.get(name) or QueueWatch(name, is_new=self._has_looked) for name in names}
        self._has_looked = True
        now = await store.clock()
        for watch in self._watches.values():
            await watch.look(store, now)
        infos = [worker for worker in workers if set(worker.queues) & set(names)]
        return self._picture(store.url, now, infos, len(wanted) - len(names), known)

    def _held(self) -> Counter[str] | None:
        """The number of running jobs per worker, from the jobs; None if there are too many to read."""
        holders = [watch.holders() for watch in self._watches.values()]
        if any(each is None for each in holders):
            return None
        return Counter(worker for each in holders if each is not None for worker in each)

    def _picture(self, url: str, now: Instant, infos: list[WorkerInfo], more: int, known: Sequence[str]) -> Picture:
        watches = list(self._watches.values())
        held = self._held()
        names = {info.id: info.name for info in infos}
        return Picture(
            now,
            url,
            tuple(watch.picture(now, self._step) for watch in watches),
            tuple(
                sorted((job for watch in watches for job in watch.running(now, names)), key=lambda job: -job.seconds)
            ),
            tuple(
                _worker(info, held, set(self._watches), now) for info in sorted(infos, key=lambda info: info.started_at)
            ),
            tuple(sorted((event for watch in watches for event in watch.events()), key=lambda event: event.at))[
                -EVENTS:
            ],
            tuple(
                sorted((failure for watch in watches for failure in watch.failures()), key=lambda failure: failure.at)
            )[-FAILURES:],
            tuple(sorted((run for watch in watches for run in watch.next_runs(now)), key=lambda run: run.at)),
            more,
            tuple(queue for queue in self._asked if queue not in known),
        )


def _worker(info: WorkerInfo, held: Counter[str] | None, watched: set[str], now: Instant) -> WorkerPicture:
    # A worker's own report is some seconds old, and includes its other queues.
    running = info.running if held is None or not set(info.queues) <= watched else held[info.id]
    return WorkerPicture(
        info.name,
        info.host,
        info.pid,
        info.queues,
        running,
        info.concurrency,
        max(0, now - info.started_at) / 1000,
        info.paused,
    )
