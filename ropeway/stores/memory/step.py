"""The transaction of the memory store: a command takes effect completely or not at all."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ...job.instants import Instant
from ...job.record import JobRecord, NewJob
from ...job.retention import Retention
from ...store.values import RevokedLock, Topic
from .queue_data import QueueData
from .shared_state import SharedState

if TYPE_CHECKING:
    from .verbs.flows import News


class Step:
    """Holds the store's lock, and commits every queue it touched, or rolls all of them back.

    `now` is the same instant for everything in it.
    """

    __slots__ = (
        "_queues",
        "_reads_clock",
        "_revoked",
        "_wakes",
        "ended",
        "follow_ups",
        "followers",
        "news",
        "now",
        "shared",
    )

    def __init__(self, shared: SharedState, now: Instant | None) -> None:
        self.shared = shared
        self.now: Instant = now or 0
        self._reads_clock = now is None
        self.ended: list[tuple[JobRecord, Retention]] = []
        """Jobs that became final in this step, with their retention."""
        self.followers: list[tuple[str, str]] = []
        """Queues and ids of jobs that waited for the end of others by a dedupe key. Some may end in this step."""
        self.follow_ups: list[NewJob] = []
        """Letters of jobs that ended in this step, not yet added."""
        self.news: deque[News] = deque()
        """Ends of children that their parents were not told of yet."""
        self._queues: dict[str, QueueData] = {}
        self._revoked: list[tuple[str, RevokedLock]] = []
        self._wakes: set[tuple[Topic, str]] = set()

    def __enter__(self) -> Self:
        self.shared.lock.acquire()
        if self._reads_clock:
            self.now = self.shared.clock.now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._roll_back()
        finally:
            self.shared.lock.release()

    def queue(self, name: str) -> QueueData:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = self.shared.queue(name)
            queue.begin()
        return queue

    def revoke(self, queue: str, lock: RevokedLock) -> None:
        self._revoked.append((queue, lock))
        self._wakes.add(("revoked", queue))

    def wake(self, queue: str, topic: Topic = "jobs") -> None:
        """Wakes, at the commit, those that listen to a topic; by default, because a claim may find more jobs."""
        self._wakes.add((topic, queue))

    def _commit(self) -> None:
        try:
            for queue in self._queues.values():
                queue.prepare(self.now)
        except BaseException:
            self._roll_back()
            raise
        for queue in self._queues.values():
            is_new = queue.name not in self.shared.queues
            if queue.commit(self.now):
                self._wakes.add(("events", queue.name))
            if is_new and not queue.is_blank:
                self.shared.queues[queue.name] = queue
        for name, lock in self._revoked:
            self.shared.revoked.append(name, lock, self.now)
        self.shared.hub.wake(self._wakes)

    def _roll_back(self) -> None:
        for queue in self._queues.values():
            queue.roll_back()
