"""Log formats of a worker: text, or one JSON object per line."""

from __future__ import annotations

import copy
import logging
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from logging.handlers import QueueHandler
from typing import Any, Final, Literal, TypeAlias, cast

import click

from .escaping import one_line, printable
from .ids import is_narrow, short_id
from .sink import Sink, shows_colours, use
from .tables import STATE_COLOURS
from .text import as_json, iso

LogFormat: TypeAlias = Literal["pretty", "json"]

LEVELS: Final = ("debug", "info", "warning", "error")
_EVENT_COLOURS: Final = {**STATE_COLOURS, "retrying": "yellow"}
_COLOURS: Final = {"DEBUG": "bright_black", "INFO": "green", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


class Pretty(logging.Formatter):
    """Time, level and message; further lines, such as those of a trace, are indented below."""

    def __init__(self, mark: str, *, is_coloured: bool, room: Callable[[], int | None] = lambda: None) -> None:
        super().__init__()
        self._mark = mark
        self._is_coloured = is_coloured
        self._room = room
        """The columns of the terminal; None where it is none."""

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = printable(_text(self, record)).split("\n")
        facts = getattr(record, "facts", {})
        if is_narrow(self._room()) and {"job_id", "queue"} <= facts.keys():
            first = first.replace(_place(facts), _place({**facts, "job_id": short_id(facts["job_id"])}), 1)
            facts = {**facts, "job_id": short_id(facts["job_id"])}
        if self._is_coloured:
            first = _coloured(first, facts)
        level = f"{record.levelname:<7}"
        if self._is_coloured:
            level = click.style(level, fg=_COLOURS.get(record.levelname))
        at = self.formatTime(record, "%H:%M:%S")
        source = "" if record.name == "ropeway" else f"{one_line(record.name)}: "
        return "\n".join([f"{at} {level} {self._mark}{source}{first}", *(f"    {line}" for line in rest if line)])


class Json(logging.Formatter):
    """JSON with the message and the record's `facts`."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = {"process": mark} if mark else {}

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": iso(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": os.getpid(),
            **self._mark,
            **getattr(record, "facts", {}),
        }
        if trace := _trace(self, record):
            entry["exception"] = trace
        return as_json(entry)


class NeverBlocks(QueueHandler):
    """Passes records to a sink; messages are formatted before, because their arguments may change."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(cast(Any, sink))
        self._sink = sink

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        ready = copy.copy(record)
        ready.msg, ready.args = record.getMessage(), None
        ready.exc_text, ready.exc_info = _trace(logging.Formatter(), record), None
        return ready

    def enqueue(self, record: logging.LogRecord) -> None:
        self._sink.put(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - a name of logging's
        """Reports an error of the logging call, such as a message that does not fit its arguments."""
        self._sink.put(f"a log line could not be written, of {record.pathname}:{record.lineno}")
        self._sink.put(printable(traceback.format_exc().rstrip()))


def set_up_logs(log_format: LogFormat, level: str, mark: str = "") -> None:
    """Sends all log records to standard error; `mark` distinguishes the processes of one command.

    It comes before the app is imported: an app that sets up logs of its own has the last word.
    """
    formatter: logging.Formatter
    if log_format == "json":
        formatter = Json(mark)
    else:
        formatter = Pretty(f"[{mark}] " if mark else "", is_coloured=shows_colours(sys.stderr), room=_room)
    sink = Sink(sys.stderr, formatter)
    use(sink)
    logging.basicConfig(level=level.upper(), handlers=[NeverBlocks(sink)])


def _room() -> int | None:
    return shutil.get_terminal_size().columns if sys.stderr.isatty() else None


def _text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    trace = _trace(formatter, record)
    return f"{record.getMessage()}\n{trace}" if trace else record.getMessage()


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info and not record.exc_text:
        return formatter.formatException(record.exc_info)
    return record.exc_text or ""


def _place(facts: dict[str, Any]) -> str:
    """The part of a log line that names the job: its queue and id."""
    return one_line(f"({facts['queue']} {facts['job_id']})")


def _coloured(line: str, facts: dict[str, Any]) -> str:
    """A coloured line about a job: its outcome is highlighted, its queue and id are dimmed."""
    if not {"event", "job_name", "job_id", "queue"} <= facts.keys():
        return line
    name = one_line(facts["job_name"])
    what, place, rest = line.removeprefix(name).partition(_place(facts))
    colour = _EVENT_COLOURS.get(facts["event"])
    return click.style(name, bold=True) + click.style(what, fg=colour) + click.style(place, dim=True) + rest
