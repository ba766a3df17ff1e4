"""What jobs went through: failed attempts and log lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ...job.instants import Instant
from ...store.values import FailedAttempt, History, LogLine


class Past:
    """Of one job. Most jobs have none."""

    __slots__ = ("dropped", "failures", "log")

    def __init__(self) -> None:
        self.failures: deque[FailedAttempt] = deque()
        self.log: deque[LogLine] = deque()
        self.dropped = 0


class Pasts:
    """Of all jobs of a queue."""

    __slots__ = ("_pasts",)

    def __init__(self) -> None:
        self._pasts: dict[str, Past] = {}

    def __len__(self) -> int:
        return len(self._pasts)

    def fail(self, id: str, attempt: FailedAttempt, keep: int) -> None:
        failures = self._of(id).failures
        failures.append(attempt)
        while len(failures) > max(0, keep):
            failures.popleft()

    def write(self, id: str, at: Instant, lines: Sequence[str], keep: int) -> None:
        past = self._of(id)
        past.log.extend(LogLine(at, line) for line in lines)
        while len(past.log) > max(0, keep):
            past.log.popleft()
            past.dropped += 1

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._pasts.pop(id, None)

    def read(self, id: str) -> History:
        past = self._pasts.get(id)
        return History([], []) if past is None else History([*past.failures], [*past.log], past.dropped)

    def _of(self, id: str) -> Past:
        return self._pasts.setdefault(id, Past())
