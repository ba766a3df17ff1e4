"""history and log: failed attempts and log lines of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ....job.instants import Instant
from ....store.commands import ReadHistory, ReadLog
from ....store.values import FailedAttempt, History, LogLine, LogPage
from ..executor import Executor
from ..link import Row
from ..parameters import NULL, amount, boolean, text

_failures: Final[Callable[[str], list[FailedAttempt]]] = msgspec.json.Decoder(list[FailedAttempt]).decode
_lines: Final[Callable[[str], list[LogLine]]] = msgspec.json.Decoder(list[LogLine]).decode


async def history(on: Executor, command: ReadHistory, _: Instant | None) -> History | None:
    return _history_of(await on.call("history", text(command.queue), text(command.id)))


def _history_of(rows: Sequence[Row]) -> History | None:
    if not rows:
        return None
    [(failures, log, logged)] = rows
    lines = _lines(log) if log else []
    return History(_failures(failures) if failures else [], lines, logged - len(lines))


async def log(on: Executor, command: ReadLog, _: Instant | None) -> LogPage | None:
    place = NULL if command.after is None else amount(command.after)
    # One more than fits says whether there is another page.
    most = amount(command.limit + 1)
    rows = await on.call("log", text(command.queue), text(command.id), place, most, boolean(command.newest_first))
    return _log_of(rows, command.limit)


def _log_of(rows: Sequence[Row], limit: int) -> LogPage | None:
    """A page of log lines; `sql/log.sql` was asked for one line more than fits."""
    if not rows:
        return None
    [(numbers, ats, texts, newest)] = rows
    lines = [LogLine(*line) for line in zip(ats or (), texts or (), strict=True)]
    is_last = limit <= 0 or len(lines) <= limit
    return LogPage(lines[: max(0, limit)], newest, None if is_last else numbers[limit - 1])
