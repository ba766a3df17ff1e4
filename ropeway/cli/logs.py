"""The log of a worker: for people, or a JSON object a line."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Final, Literal, TypeAlias

import click

from .escaping import one_line, printable
from .text import as_json, iso

LogFormat: TypeAlias = Literal["pretty", "json"]

LEVELS: Final = ("debug", "info", "warning", "error")
_COLOURS: Final = {"DEBUG": "bright_black", "INFO": "green", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


class Pretty(logging.Formatter):
    """Time, level and message; further lines, such as those of a trace, stand indented below."""

    def __init__(self, mark: str, *, is_coloured: bool) -> None:
        super().__init__()
        self._mark = mark
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = printable(_text(self, record)).split("\n")
        level = f"{record.levelname:<7}"
        if self._is_coloured:
            level = click.style(level, fg=_COLOURS.get(record.levelname))
        at = self.formatTime(record, "%H:%M:%S")
        source = "" if record.name == "ropeway" else f"{one_line(record.name)}: "
        return "\n".join([f"{at} {level} {self._mark}{source}{first}", *(f"    {line}" for line in rest if line)])


class Json(logging.Formatter):
    """Facts that a record carries under `facts` stand beside the message."""

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
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return as_json(entry)


def set_up_logs(log_format: LogFormat, level: str, mark: str = "") -> None:
    """Everything that is logged goes to standard error; `mark` tells the processes of one command apart.

    It comes before the app is imported: an app that sets up logs of its own has the last word.
    """
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(Json(mark))
    else:
        coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        handler.setFormatter(Pretty(f"[{mark}] " if mark else "", is_coloured=coloured))
    logging.basicConfig(level=level.upper(), handlers=[handler])


def _text(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    trace = f"\n{formatter.formatException(record.exc_info)}" if record.exc_info else ""
    return f"{record.getMessage()}{trace}"
