"""What a worker knows of one of its queues."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from ..client.queue import Queue
from ..job.outcomes import Outcome
from .job import Job


class Lane:
    """A queue, the outcomes that wait to be settled in it, and whether it is worth asking for more jobs."""

    def __init__(self, queue: Queue, woken: Callable[[Lane], None]) -> None:
        self.queue = queue
        self.group: Lanes
        """Those of its failure domain, itself included."""
        self.ended: deque[tuple[Job, Outcome]] = deque()
        """Taken from by other threads too, if the loop is blocked."""
        self.dry = asyncio.Event()
        """Set when a claim got less than it asked for: nothing to claim until something wakes the lane."""
        self.let_others_go = False
        """Whether its outcomes have let another lane's claim go ahead of them."""
        self.wakes = 0
        """How often it was woken: an answer to a claim that left before the last wake says nothing of what is there."""
        self._woken = woken
        self._alarm: asyncio.TimerHandle | None = None

    def take_ended(self, most: int | None = None) -> list[tuple[Job, Outcome]]:
        """From any thread: the oldest ones, all of them unless it is said how many. None is given twice."""
        taken: list[tuple[Job, Outcome]] = []
        take = self.ended.popleft
        with suppress(IndexError):
            for _ in range(len(self.ended) if most is None else most):
                taken.append(take())  # noqa: PERF401 - what was taken before an error would be lost
        return taken

    def run_dry(self, again_in: float | None) -> None:
        """`again_in` seconds from now a delay ends, of which no wake will tell."""
        self.dry.set()
        self._silence()
        if again_in is not None:
            self._alarm = asyncio.get_running_loop().call_later(again_in, self.wake)

    def wake(self) -> None:
        self.wakes += 1
        self._silence()
        if self.dry.is_set():
            self.dry.clear()
            self._woken(self)

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class Lanes:
    """The lanes of one failure domain, served in turn. One that does not answer holds up no lane of another."""

    def __init__(self, lanes: list[Lane], domains: int) -> None:
        self.all = lanes
        self.news = asyncio.Event()
        """Set when there may be something to do in one of them."""
        self.under_way = 0
        self.reserved = 0
        """Places that claims on their way there may fill, or might have filled in time."""
        self._domains = domains
        self.has_others = domains > 1
        """Whether the worker has lanes of other domains too."""
        self._turn = 0
        for lane in lanes:
            lane.group = self

    def part_of(self, free: int, size: int, *, all_answer: bool) -> int:
        """How many of the free places may be claimed for: claims that are not answered leave some to other domains.

        While all of them answer, three in four; when one does not, an equal share.
        """
        if not self.has_others:
            return free
        share = size - size // 4 if all_answer else -(-size // self._domains)
        return min(free, share - self.reserved)

    @property
    def is_dry(self) -> bool:
        return all(lane.dry.is_set() for lane in self.all)

    def next(self) -> Lane | None:
        """The one whose turn it is to claim, if any of them is worth it."""
        for step in range(len(self.all)):
            lane = self.all[(self._turn + step) % len(self.all)]
            if not lane.dry.is_set():
                self._turn += step + 1
                for other in self.all:
                    other.let_others_go = other is not lane and bool(other.ended)
                return lane
        return None


def by_domain(lanes: Iterable[Lane]) -> dict[str, Lanes]:
    groups: dict[str, list[Lane]] = {}
    for lane in lanes:
        groups.setdefault(lane.queue.store.domain_of(lane.queue.name), []).append(lane)
    return {domain: Lanes(group, len(groups)) for domain, group in groups.items()}
