"""The details of an event on one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..job.events import EVENT_NAMES
from ..job.instants import LAST_INSTANT
from ..worker.timing import in_words
from .escaping import one_line
from .text import instant_time, shown

_TIMES: Final[dict[str, Callable[[int], str]]] = {
    "due_at": lambda instant: "when woken" if instant == LAST_INSTANT else instant_time(instant),
    "delay": lambda milliseconds: in_words(milliseconds / 1000),
}


def event_details(name: str, data: Mapping[str, Any]) -> str:
    """As `key=value`, with JSON values. Times that Ropeway wrote, in milliseconds, are local times and durations."""
    return " ".join(f"{one_line(key)}={_detail(name, key, value)}" for key, value in data.items())


def _detail(name: str, key: str, value: Any) -> str:
    tell = _TIMES.get(key) if name in EVENT_NAMES and type(value) is int else None
    return shown(value) if tell is None else shown(tell(value))
