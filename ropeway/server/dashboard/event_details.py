"""The details of an event as people read them. What these give is text, which the templates escape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from ...job.events import EVENT_NAMES
from ...job.instants import LAST_INSTANT, moment_of
from .formats import compact, duration

Detail = tuple[str, str | datetime]
"""A label, empty if the value needs none, and the value."""


def event_details(name: str, data: Any) -> list[Detail]:
    """As labels and values; plain JSON for events of applications and for data that was redacted."""
    if name not in EVENT_NAMES or not isinstance(data, Mapping):
        return [("", compact(data, 300))]
    if name.startswith("phase-") and data.keys() == {"phase", "number", "of"}:
        return [("", f"{data['phase']}, {data['number']} of {data['of']}")]
    return [_WRITERS.get(key, _other)(key, value) for key, value in data.items()]


def _other(key: str, value: Any) -> Detail:
    label = key.replace("_", " ")
    return ("", label) if value is True else (label, _text(value))


def _alone(_: str, value: Any) -> Detail:
    return "", _text(value)


def _due(key: str, value: Any) -> Detail:
    if type(value) is not int or not 0 <= value <= LAST_INSTANT:
        return _other(key, value)
    return "due", "when it is woken" if value == LAST_INSTANT else moment_of(value)


def _delay(key: str, value: Any) -> Detail:
    return _other(key, duration(value) if type(value) is int else value)


def _progress(_: str, value: Any) -> Detail:
    return "", f"{value:g} %" if type(value) in (int, float) and 0 <= value <= 100 else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact(value, 300)


_WRITERS: Final[Mapping[str, Callable[[str, Any], Detail]]] = {
    "due_at": _due,
    "delay": _delay,
    "progress": _progress,
    "reason": _alone,
    "name": _alone,
}
