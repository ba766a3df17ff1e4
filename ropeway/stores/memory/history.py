"""The history of jobs: failed attempts and log lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ...job.instants import Instant
from ...store.values import FailedAttempt, History, LogLine, LogPage


class JobHistory:
    """History of one job. Most jobs have none."""

    __slots__ = ("dropped", "failures", "log")

    def __init__(self) -> None:
        self.failures: deque[FailedAttempt] = deque()
        self.log: deque[LogLine] = deque()
        self.dropped = 0

    def drop_lines(self, keep: int) -> None:
        while len(self.log) > max(0, keep):
            self.log.popleft()
            self.dropped += 1


class Histories:
    """Histories of all jobs of a queue."""

    __slots__ = ("_histories",)

    def __init__(self) -> None:
        self._histories: dict[str, JobHistory] = {}

    def __len__(self) -> int:
        return len(self._histories)

    def fail(self, id: str, attempt: FailedAttempt, keep: int) -> None:
        failures = self._of(id).failures
        failures.append(attempt)
        while len(failures) > max(0, keep):
            failures.popleft()

    def write(self, id: str, at: Instant, lines: Sequence[str], keep: int) -> None:
        history = self._of(id)
        history.log.extend(LogLine(at, line) for line in lines)
        history.drop_lines(keep)

    def clear(self, id: str, keep: int) -> None:
        if id in self._histories:
            self._histories[id].drop_lines(keep)

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._histories.pop(id, None)

    def read(self, id: str) -> History:
        history = self._histories.get(id)
        return History([], []) if history is None else History([*history.failures], [*history.log], history.dropped)

    def page(self, id: str, after: int | None, limit: int, *, newest_first: bool) -> LogPage:
        history = self._histories.get(id)
        if history is None:
            return LogPage([])
        first, newest = history.dropped + 1, history.dropped + len(history.log)
        if newest_first:
            end = newest if after is None else min(after - 1, newest)
            numbers = range(end, max(first, end - limit + 1) - 1, -1)
            more = bool(numbers) and numbers[-1] > first
        else:
            begin = max(first, 0 if after is None else after + 1)
            numbers = range(begin, min(newest, begin + limit - 1) + 1)
            more = bool(numbers) and numbers[-1] < newest
        lines = [history.log[number - first] for number in numbers]
        return LogPage(lines, newest, numbers[-1] if more else None)

    def _of(self, id: str) -> JobHistory:
        return self._histories.setdefault(id, JobHistory())
