"""`Exporter`: the numbers of a store as a page for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from .. import __version__
from ..client.portal import run
from ..client.queue import Queue
from ..client.workers import known_queues, read_workers
from ..errors import InvalidOption
from ..job.webhooks import DELIVERIES
from ..showing import shown
from ..store.contract import Store
from ..store.single_flight import SingleFlight
from . import families
from .page import Page
from .queues import QueueReader, QueueReading
from .totals import KIND

MOST_QUEUES: Final = 300
"""Most queues that are read, by name: each costs about seven commands and 60 samples."""


class StoreReading(msgspec.Struct, frozen=True):
    """The numbers of a store at one time."""

    queues: list[QueueReading]
    left_out: int
    seconds: float
    """How long the reading took."""


class Exporter:
    """Writes what Prometheus reads. Keep one for a store: its next page costs less, and calls at once share a read.

    The constructor does not connect. `on` is a store, or a queue, whose whole store is meant.
    """

    def __init__(self, on: Store | Queue) -> None:
        if not isinstance(on, Queue) and not callable(getattr(on, "settle", None)):
            raise InvalidOption("on", f"cannot be {shown(on)}: give a store or a queue")
        self._on = on
        self._reading: tuple[Store, SingleFlight[StoreReading]] | None = None

    async def text(self, only: Callable[[str], bool] | None = None) -> str:
        """The page. With `only`, of the queues for which it answers true."""
        page = Page()
        await self.put(page, only)
        return page.text()

    async def put(self, page: Page, only: Callable[[str], bool] | None = None) -> None:
        """Writes the numbers to a page that may have others."""
        reading = await self._flight().result()
        for queue in reading.queues:
            if only is None or only(queue.queue):
                queue.put(page)
        deliveries = {each.queue: each.counts for each in reading.queues}.get(DELIVERIES)
        waiting = sum(deliveries[state] for state in ("waiting", "delayed", "active")) if deliveries else 0
        page.put(families.DELIVERIES_WAITING, waiting)
        page.put(families.DELIVERIES_FAILED, deliveries["failed"] if deliveries else 0)
        page.put(families.LEFT_OUT, reading.left_out)
        page.put(families.READ, reading.seconds)
        page.put(families.BUILD, 1, version=__version__)

    def text_sync(self) -> str:
        """`text` for code without an event loop."""
        return run(self.text(), "await exporter.text()")

    def _flight(self) -> SingleFlight[StoreReading]:
        """Of the handle that its queue has on this event loop."""
        store = self._on.store if isinstance(self._on, Queue) else self._on
        if self._reading is None or self._reading[0] is not store:
            self._reading = store, SingleFlight(store.url, StoreReader(store).read)
        return self._reading[1]


class StoreReader:
    """Reads the queues of a store, one after the other: a scrape must not be a burst of load."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: dict[str, QueueReader] | None = None

    async def read(self) -> StoreReading:
        began, store = time.perf_counter(), self._store
        workers = await read_workers(store)
        existing = await known_queues(store, workers)
        if self._readers is None:
            # Those that are empty now have totals too.
            records = await store.recall(KIND)
            self._readers = {record.key: QueueReader(store, record.key, record) for record in records}
        # That of deliveries is never left out.
        names = sorted({*existing, *self._readers}, key=lambda name: (name != DELIVERIES, name))
        readings = []
        now = await store.clock()
        for name in names[:MOST_QUEUES]:
            reader = self._readers.setdefault(name, QueueReader(store, name, None))
            readings.append(await reader.read(now, workers, exists=name in existing))
        return StoreReading(readings, max(0, len(names) - MOST_QUEUES), time.perf_counter() - began)
