"""The queues of a worker, as its dispatcher sees them: the load of the next trip, and whether a claim is worthwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from ..client.queue import Queue
from ..client.updates import UpdateLine
from ..job.outcomes import Outcome
from .job import Job


class QueueFeed:
    """One queue: its outcomes and updates that wait for a trip, and whether it is dry, i.e. not worth a claim now."""

    def __init__(self, queue: Queue, woken: Callable[[QueueFeed], None]) -> None:
        self.queue = queue
        self.domain: DomainFeeds
        """The feeds of its failure domain, itself included."""
        self.ended: deque[tuple[Job, Outcome]] = deque()
        """Outcomes to settle, oldest first. Also emptied by the maintenance thread, if the loop is blocked."""
        self.updates = UpdateLine()
        """Updates of parked attempts (`parking.py`)."""
        self.dry = asyncio.Event()
        """Set when a claim got less than it asked for: nothing to claim until `wake`."""
        self.has_yielded = False
        """True if its load waited for another feed's claim in this round."""
        self.wakes = 0
        """Counts calls of `wake`: a short answer to a claim sent before the last one does not mean the queue is dry."""
        self._woken = woken
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0
        """The loop's time of the alarm. The handle does not say: uvloop's has no `when` if the delay is 0."""

    @property
    def has_load(self) -> bool:
        return bool(self.ended or self.updates)

    def take_ended(self, most: int | None = None) -> list[tuple[Job, Outcome]]:
        """Takes the oldest `most` outcomes, or all. From any thread; no outcome is given twice."""
        taken: list[tuple[Job, Outcome]] = []
        take = self.ended.popleft
        with suppress(IndexError):
            for _ in range(len(self.ended) if most is None else most):
                taken.append(take())  # noqa: PERF401 - outcomes taken before an IndexError would be lost
        return taken

    def run_dry(self, again_in: float | None) -> None:
        """Marks it as dry; it wakes by itself after `again_in` seconds, when a delay or limit ends."""
        self.dry.set()
        self._silence()
        if again_in is not None:
            loop = asyncio.get_running_loop()
            self._alarm_at = loop.time() + again_in
            self._alarm = loop.call_later(again_in, self.wake)

    def wake(self) -> None:
        self.wakes += 1
        self._silence()
        if self.dry.is_set():
            self.dry.clear()
            self._woken(self)

    def take_alarm(self) -> float | None:
        """Takes over its alarm: the seconds until it would wake by itself; None if it would not."""
        if self._alarm is None:
            return None
        left = self._alarm_at - asyncio.get_running_loop().time()
        self._silence()
        return max(0.0, left)

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class DomainFeeds:
    """The feeds of one failure domain, served in turn. A domain that does not answer holds up no other."""

    def __init__(self, feeds: list[QueueFeed], domains: int) -> None:
        self.all = feeds
        self.wake_up = asyncio.Event()
        """Set when there may be something to do for one of them."""
        self.under_way = 0
        self.reserved = 0
        """Slots that claims in flight to this domain asked for, including those released because they were late."""
        self._domains = domains
        self.has_others = domains > 1
        """True if the worker has feeds of other domains too."""
        self._turn = 0
        for feed in feeds:
            feed.domain = self

    def part_of(self, free: int, size: int, *, all_answer: bool) -> int:
        """How many of the free slots this domain may claim for: unanswered claims must leave some to other domains.

        While all domains answer, three in four; when one does not, an equal share.
        """
        if not self.has_others:
            return free
        share = size - size // 4 if all_answer else -(-size // self._domains)
        return min(free, share - self.reserved)

    @property
    def is_dry(self) -> bool:
        return all(feed.dry.is_set() for feed in self.all)

    def next(self) -> QueueFeed | None:
        """The feed whose turn it is to claim; None if all are dry."""
        for step in range(len(self.all)):
            feed = self.all[(self._turn + step) % len(self.all)]
            if not feed.dry.is_set():
                self._turn += step + 1
                for other in self.all:
                    other.has_yielded = other is not feed and other.has_load
                return feed
        return None


def by_domain(feeds: Iterable[QueueFeed]) -> dict[str, DomainFeeds]:
    groups: dict[str, list[QueueFeed]] = {}
    for feed in feeds:
        groups.setdefault(feed.queue.store.domain_of(feed.queue.name), []).append(feed)
    return {domain: DomainFeeds(group, len(groups)) for domain, group in groups.items()}
