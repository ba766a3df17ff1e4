"""Counters and histograms of a queue that never decrease, made of what stores keep per minute.

    record in the store        read again, and added up        written to now and then
    [everything before T] + [minutes from T to an hour ago] + [the last hour]
                                                            '-- each scrape reads the last minutes of it

Stores keep minutes for two weeks. Their plain sum would fall as the old ones go, and Prometheus takes a counter that
falls for one that began again. So the sum of what is older than an hour moves into a record, once an hour: whichever
process reads next, also after a restart, goes on from there.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..client.timings import HOUR, KEPT, MINUTE, read_timings
from ..errors import StoreError
from ..job.instants import Instant, Milliseconds
from ..job.timings import Timings
from ..logger import log
from ..store.contract import Store
from ..store.values import Record
from .families import COUNTED

KIND: Final = "metric-totals"
LATE: Final[Milliseconds] = 10 * MINUTE
"""How much of what was read before is read again: a transaction counts in the minute in which it began."""
SETTLED: Final[Milliseconds] = HOUR
"""After this time a minute does not change any more."""
FIRST_TIMINGS: Final[Milliseconds] = 24 * HOUR
"""How far back the first of all readers looks for timings: each hour costs a read."""


class Sums(msgspec.Struct):
    """What happened in some time."""

    counts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    timings: Timings = msgspec.field(default_factory=Timings)

    def add(self, other: Sums) -> None:
        for kind, count in other.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + count
        self.timings.add(other.timings)


class Settled(msgspec.Struct):
    """The sums of all minutes before `until`, as the record has them."""

    until: Instant = 0
    sums: Sums = msgspec.field(default_factory=Sums)


_decode: Final = msgspec.json.Decoder(Settled).decode


class Totals:
    """The totals of one queue."""

    def __init__(self, store: Store, queue: str, record: Record | None) -> None:
        self._store = store
        self._queue = queue
        self._version = 0 if record is None else record.version
        self._settled = _settled(record)
        self._minutes: dict[Instant, Sums] = {}
        self._read_at: Instant | None = None

    async def read(self, now: Instant, *, lasting: bool) -> Sums:
        """The totals until now. Without `lasting` the record is left to expire: there is no such queue any more."""
        since = self._settled.until
        if self._read_at is not None:
            since = max(since, self._read_at - LATE)
        for metric in await self._store.metrics(self._queue, since=since):
            counts = self._minute(metric.minute).counts
            for kind in COUNTED:
                # A queue that was obliterated begins again with small numbers.
                counts[kind] = max(counts[kind], getattr(metric, kind))
        for minute, timings in await read_timings(self._store, self._queue, since or now - FIRST_TIMINGS):
            known = self._minute(minute)
            if timings.run.number >= known.timings.run.number:
                known.timings = timings
        self._read_at = now
        if now - self._settled.until > 2 * SETTLED:
            await self._settle(now - SETTLED, lasting=lasting)
        total = Sums()
        for part in (self._settled.sums, *self._minutes.values()):
            total.add(part)
        return total

    def _minute(self, minute: Instant) -> Sums:
        """The sums of a minute that is not settled; what comes for one that is counts no more."""
        return Sums() if minute < self._settled.until else self._minutes.setdefault(minute, Sums())

    async def _settle(self, until: Instant, *, lasting: bool) -> None:
        self._settled.until = until - until % MINUTE
        for minute in [minute for minute in self._minutes if minute < self._settled.until]:
            self._settled.sums.add(self._minutes.pop(minute))
        if not lasting:
            return
        record = Record(KIND, self._queue, msgspec.json.encode(self._settled).decode())
        try:
            answer = await self._store.remember(record, expect=self._version, lasting=KEPT)
        except StoreError as error:
            # Its right may be reading alone; what is lost is that another process goes on from here.
            log.debug("the totals of %r were not written: %s", self._queue, error)
        else:
            # If another process was first, its numbers are the same.
            self._version = 0 if answer.record is None else answer.record.version


def _settled(record: Record | None) -> Settled:
    if record is None:
        return Settled()
    try:
        return _decode(record.value)
    except msgspec.MsgspecError:
        # Of another version, or damaged: it begins again.
        return Settled()
