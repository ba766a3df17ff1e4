"""history and log: failed attempts and log lines of a job."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ....job.instants import Instant
from ....store.commands import ReadHistory, ReadLog
from ....store.values import FailedAttempt, History, LogLine, LogPage
from ..encoding import bounded
from ..executor import Executor
from ..failures import reading
from ..ids import shortened

_failure: Final = msgspec.msgpack.Decoder(tuple[int, int, str | None, str, str, int]).decode
_line: Final = msgspec.msgpack.Decoder(tuple[int, str]).decode


async def history(on: Executor, command: ReadHistory, _: Instant | None) -> History | None:
    answer = await on.run("history", command.queue, shortened(command.id))
    with reading(on.target.url):
        return _history_of(answer)


def _history_of(answer: list[Any] | None) -> History | None:
    if answer is None:
        return None
    failures, lines, written = answer
    log = [LogLine(*_line(line)) for line in lines]
    return History([FailedAttempt(*_failure(failure)) for failure in failures], log, max(0, written - len(log)))


async def log(on: Executor, command: ReadLog, _: Instant | None) -> LogPage | None:
    place = False if command.after is None else bounded(command.after)
    packed = shortened(command.id), place, bounded(command.limit), command.newest_first
    answer = await on.run("log", command.queue, *packed)
    with reading(on.target.url):
        return _log_of(answer, newest_first=command.newest_first)


def _log_of(answer: list[Any] | None, *, newest_first: bool) -> LogPage | None:
    if answer is None:
        return None
    packed, newest, last = answer
    lines = [LogLine(*_line(line)) for line in packed]
    return LogPage(lines[::-1] if newest_first else lines, newest, last)
