"""Deduplication: a key that at most one job of a queue holds, and what a second add does with it."""

from __future__ import annotations

import hashlib
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from ..errors import InvalidName, InvalidOption
from .choices import one_of
from .codec import JsonText
from .durations import Duration, milliseconds
from .instants import Instant, Milliseconds
from .names import is_printable, plain
from .states import FINAL, OPEN, STATES, State

DedupeMode: TypeAlias = Literal["until-final", "throttle", "debounce", "keep-last", "supersede"]
"""The effect of a second add with the same key.

`until-final`: finds the job that holds the key until that is final. `throttle`: finds it for `ttl`, whatever becomes of
it. `debounce`: gives its data to the job while that is delayed, and the delay, `ttl`, begins again. `keep-last`: gives
its data to the job that waits; while one is active, a single job waits for its end. `supersede`: cancels the job and
takes its place.
"""

DedupeAction: TypeAlias = Literal["find", "refresh", "postpone", "follow", "replace", "take"]
"""The effect of an add whose key is held.

`find`: the job that holds it is found. `refresh`: it is found, and gets the new data. `postpone`: it gets the new data,
and its delay begins again. `follow`: the new job is delayed until the holder ends; if one is already, that gets the new
data. `replace`: the holder, and one that follows it, are cancelled, and the new job takes the key. `take`: it takes the
key.
"""

MODES: Final[tuple[DedupeMode, ...]] = get_args(DedupeMode)
WITH_TTL: Final[tuple[DedupeMode, ...]] = ("throttle", "debounce")
IN_FLOWS: Final[tuple[DedupeMode, ...]] = ("until-final", "throttle")
"""Modes that a job with children may have: they leave jobs that are there as they are."""
LONGEST_KEY: Final = 255
SUPERSEDED: Final = "superseded by "
"""The beginning of the reason for which a superseded job is cancelled; the id of the new one follows."""
_read_mode: Final = one_of(*MODES)

ACTIONS: Final[dict[DedupeMode, dict[State, DedupeAction]]] = {
    "until-final": dict.fromkeys(STATES, "find"),
    "throttle": dict.fromkeys(STATES, "find"),
    "debounce": {**dict.fromkeys(STATES, "take"), "delayed": "postpone"},
    "keep-last": {**dict.fromkeys(OPEN, "refresh"), **dict.fromkeys(FINAL, "take"), "active": "follow"},
    "supersede": {**dict.fromkeys(OPEN, "replace"), **dict.fromkeys(FINAL, "take")},
}
"""The table: by the mode of the add, and the state of the job that holds its key (completed, if that is gone)."""


class DedupeRule(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The stored form of a `Dedupe`."""

    key: str
    mode: DedupeMode = "until-final"
    ttl: Milliseconds = 0
    """How long `throttle` holds the key; the delay of `debounce`."""

    def held_until(self, now: Instant) -> Instant | None:
        """Until when a job that takes the key now holds it; None: until it ends."""
        return now + self.ttl if self.mode == "throttle" else None


class Dedupe:
    """Adds a job only if no other job of its queue holds the same key; `mode` says what happens if one does.

    `throttle` and `debounce` need a `ttl`, the others have none. A key belongs to jobs of one name: where a mode
    gives newer data to a job that is there, a job of another name keeps its own.
    """

    __slots__ = ("_key", "mode", "ttl")

    def __init__(self, key: str, mode: DedupeMode = "until-final", *, ttl: Duration | None = None) -> None:
        self._key: str | None = dedupe_key(key)
        self._set(mode, ttl)

    @classmethod
    def by_data(cls, mode: DedupeMode = "until-final", *, ttl: Duration | None = None) -> Dedupe:
        """The key is a hash of the job's name and data; the order of keys in objects does not matter."""
        self = cls.__new__(cls)
        self._key = None
        self._set(mode, ttl)
        return self

    def _set(self, mode: DedupeMode, ttl: Duration | None) -> None:
        self.mode: DedupeMode = _read_mode("mode", mode)
        if ttl is None and mode in WITH_TTL:
            raise InvalidOption("ttl", f'is missing: mode "{mode}" needs one')
        if ttl is not None and mode not in WITH_TTL:
            raise InvalidOption("ttl", f'is for the modes {" and ".join(WITH_TTL)}: mode "{mode}" has none')
        self.ttl: Milliseconds = 0 if ttl is None else milliseconds(ttl, "ttl")
        if ttl is not None and self.ttl == 0:
            raise InvalidOption("ttl", "cannot be 0: use at least 1 ms")

    def __repr__(self) -> str:
        key = "by data" if self._key is None else repr(self._key)
        return f"<Dedupe {key} {self.mode}>"

    def rule(self, name: str, data: JsonText) -> DedupeRule:
        """The rule for one job."""
        return DedupeRule(_hash(name, data) if self._key is None else self._key, self.mode, self.ttl)


def dedupe_key(given: object) -> str:
    if isinstance(given, str) and 0 < len(given) <= LONGEST_KEY and (given.isprintable() or is_printable(given)):
        return given if type(given) is str else plain(given)
    raise InvalidName("dedupe key", given, f"use text of 1 to {LONGEST_KEY} characters without control characters")


def _hash(name: str, data: JsonText) -> str:
    ordered = msgspec.json.encode([name, msgspec.json.decode(data)], order="sorted")
    return f"sha256:{hashlib.sha256(ordered).hexdigest()}"
