"""Numbers of queues for all pages and viewers: each is read once in a while, however many ask."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from ...client.found import FoundJob
from ...client.queue import Queue
from ...client.workers import WorkerInfo, WorkerOrder, read_orders, read_workers
from ...doctor.examining import examine_open
from ...doctor.queues import PATIENCE, examine_queue
from ...job.instants import Instant, instant_of, moment_of
from ...job.names import is_queue_name
from ...job.schedules import LATE_AFTER
from ...job.timings import Timings
from ...store.inspection import Finding
from ...store.single_flight import SingleFlight
from ...store.values import Counts, Metric, Settings
from ..roles import RESERVED

if TYPE_CHECKING:
    from ..application import Broker

T = TypeVar("T")
Span: TypeAlias = Literal["hour", "day"]

MINUTE: Final = 60_000
FRESH: Final = 1.0
"""Seconds for which counts are not read again."""
FRESH_FINDINGS: Final = 5.0
FRESH_CHARTS: Final[dict[Span, float]] = {"hour": 3.0, "day": 30.0}
STEPS: Final[dict[Span, tuple[int, int]]] = {"hour": (60, MINUTE), "day": (96, 15 * MINUTE)}
"""How many bars a chart has, and the time of each."""
FAILURES: Final = 5
"""Newest failed jobs that are read per queue."""
MOST_SCHEDULES: Final = 500
"""Schedules per queue that are looked at."""
MOST_KEPT: Final = 2_000


class Summary(NamedTuple):
    name: str
    counts: Counts
    settings: Settings
    oldest: Instant | None
    """Since when the older of the first and the last waiting job could run; of all, if they have one priority."""
    failures: list[FoundJob]
    late: list[tuple[str, Instant]]
    """Schedules whose tick has not fired, with its instant."""
    overdue: Instant | None = None
    """When the first delayed job was due, if nobody has moved it since."""


class Bucket(NamedTuple):
    """A bar of a chart."""

    at: Instant
    added: int
    completed: int
    failed: int
    timings: Timings


class Summaries:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._flights: OrderedDict[tuple[str, ...], SingleFlight[Any]] = OrderedDict()
        self._known: dict[tuple[str, ...], tuple[float, Any]] = {}

    async def now(self) -> Instant:
        return await self._cached(("clock",), 0.2, self._broker.store.clock)

    async def workers(self) -> list[WorkerInfo]:
        return await self._cached(("workers",), FRESH, lambda: read_workers(self._broker.store))

    async def orders(self) -> dict[str, WorkerOrder]:
        return await self._cached(("orders",), FRESH, lambda: read_orders(self._broker.store))

    async def names(self) -> list[str]:
        """All queues with jobs, settings or a worker, by name, without those of Ropeway itself.

        Names that no client can use are left out: a program that wrote one past it would end every page.
        """

        async def read() -> list[str]:
            served = {name for worker in await self.workers() for name in worker.queues}
            known = {*await self._broker.store.queues(), *served}
            return sorted(name for name in known if not name.startswith(RESERVED) and is_queue_name(name))

        return await self._cached(("names",), FRESH, read)

    async def of(self, queue: Queue) -> Summary:
        return await self._cached(("queue", queue.name), FRESH, lambda: _summary(queue))

    async def buckets(self, queue: Queue, span: Span) -> list[Bucket]:
        return await self._cached(("chart", queue.name, span), FRESH_CHARTS[span], lambda: _buckets(queue, span))

    async def store_findings(self) -> list[Finding]:
        return await self._cached(("findings",), FRESH_FINDINGS, lambda: examine_open(self._broker.store))

    async def findings(self, queue: Queue) -> list[Finding]:
        async def examine() -> list[Finding]:
            serving = [worker for worker in await self.workers() if queue.name in worker.queues]
            return await examine_queue(queue.store, queue.name, serving, await self.now(), MOST_SCHEDULES)

        return await self._cached(("findings", queue.name), FRESH_FINDINGS, examine)

    def forget(self, queue: str | None = None) -> None:
        """Reads a queue, or everything, again at the next request, after a change."""
        for key in [key for key in self._known if queue is None or queue in key[1:]]:
            del self._known[key]

    async def _cached(self, key: tuple[str, ...], seconds: float, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        known = self._known.get(key)
        if known is not None and time.monotonic() - known[0] < seconds:
            found: T = known[1]
            return found
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = SingleFlight(self._broker.store.url, read)
            if len(self._flights) > MOST_KEPT:
                self._known.pop(self._flights.popitem(last=False)[0], None)
        value: T = await flight.result()
        self._known[key] = time.monotonic(), value
        return value


async def _summary(queue: Queue) -> Summary:
    now = await queue.store.clock()
    counts = await queue.counts()
    ends = []
    if counts["waiting"]:
        ends = [*await queue.find("waiting", limit=1), *await queue.find("waiting", limit=1, newest_first=True)]
    failures = [*await queue.find("failed", limit=FAILURES, newest_first=True)] if counts["failed"] else []
    schedules = await queue.store.schedules(queue.name, limit=MOST_SCHEDULES)
    late = [
        (each.id, each.next_at) for each in schedules if each.next_at is not None and each.next_at < now - LATE_AFTER
    ]
    settings = await queue.settings()
    oldest = min(map(_since, ends), default=None)
    return Summary(queue.name, counts, settings, oldest, failures, late, await _overdue(queue, counts, now))


async def _overdue(queue: Queue, counts: Counts, now: Instant) -> Instant | None:
    for job in await queue.find("delayed", limit=1) if counts["delayed"] else ():
        due_at = job.snapshot.due_at
        if due_at is not None and instant_of(due_at) < now - PATIENCE:
            return instant_of(due_at)
    return None


def _since(job: FoundJob) -> Instant:
    found = job.snapshot
    return instant_of(max(found.created_at, found.due_at or found.created_at))


async def _buckets(queue: Queue, span: Span) -> list[Bucket]:
    number, step = STEPS[span]
    now = await queue.store.clock()
    first = now - now % step - (number - 1) * step
    since = moment_of(first)
    counts = [[0, 0, 0] for _ in range(number)]
    timings = [Timings() for _ in range(number)]
    metric: Metric
    for metric in await queue.metrics(since=since):
        place = (metric.minute - first) // step
        if 0 <= place < number:
            for kind, value in enumerate((metric.added, metric.completed, metric.failed)):
                counts[place][kind] += value
    for minute in await queue.timings(since=since):
        place = (minute.minute - first) // step
        if 0 <= place < number:
            timings[place].add(minute.timings)
    return [
        Bucket(first + index * step, added, completed, failed, timings[index])
        for index, (added, completed, failed) in enumerate(counts)
    ]


def together(charts: list[list[Bucket]]) -> list[Bucket]:
    """The charts of several queues as one; they may have been read on both sides of a minute's end."""
    if not charts:
        return []
    summed: dict[Instant, list[Any]] = {each.at: [0, 0, 0, Timings()] for each in max(charts, key=lambda c: c[-1].at)}
    for each in (bucket for chart in charts for bucket in chart):
        if (sums := summed.get(each.at)) is not None:
            for kind, value in enumerate((each.added, each.completed, each.failed)):
                sums[kind] += value
            sums[3].add(each.timings)
    return [Bucket(at, *sums) for at, sums in summed.items()]
