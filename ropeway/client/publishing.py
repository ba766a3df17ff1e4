"""Checks of names of events: those of queues, and those that applications define."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from ..errors import InvalidName, InvalidOption
from ..job.codec import Json, JsonText, encode
from ..job.events import EVENT_NAMES, LOCAL_EVENTS
from ..job.names import job_name
from ..showing import LONGEST_VALUE, shown
from .new_jobs import PROGRESS_LIMIT

STREAMED: Final[tuple[str, ...]] = tuple(name for name in EVENT_NAMES if name not in LOCAL_EVENTS or name == "gap")
"""Names of the events in the streams of queues."""


def streamed_event(option: str, given: object) -> str:
    """The name of an event in the streams of queues."""
    if isinstance(given, str) and given in STREAMED:
        return given
    word = given[:LONGEST_VALUE] if isinstance(given, str) else ""
    near = difflib.get_close_matches(word, STREAMED, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(STREAMED)};"
    raise InvalidOption(option, f"cannot have {shown(given)}: {hint} events that you publish go into `published`")


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
