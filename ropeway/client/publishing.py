"""Checks of application-defined events."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InvalidName, InvalidOption
from ..job.codec import Json, JsonText, encode
from ..job.events import EVENT_NAMES
from ..job.names import job_name
from ..showing import shown
from .new_jobs import PROGRESS_LIMIT


def own_event(given: object) -> str:
    try:
        name = job_name(given)
    except InvalidName as wrong:
        raise InvalidName("event name", given, wrong.remedy) from None
    if name in EVENT_NAMES:
        raise InvalidName("event name", given, "the queue itself tells of that: choose a name that is yours")
    return name


def event_data(given: Mapping[str, Json] | None) -> JsonText:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidOption("data", f"of an event cannot be {shown(given)}: give a dict")
    return encode({**(given or {})}, "data", PROGRESS_LIMIT)
