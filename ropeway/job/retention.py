"""Retention of finished jobs."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

from ..errors import InvalidOption
from ..showing import shown
from .durations import Duration, milliseconds
from .instants import LAST_INSTANT, Instant, Milliseconds
from .numbers import whole

MOST_KEPT: Final = 2**53


class Keep(msgspec.Struct, frozen=True):
    """Removes jobs older than `age`, and the oldest beyond `count` per queue and state; None means no limit."""

    age: Duration | None = None
    count: int | None = None


KeepOption: TypeAlias = bool | int | Keep
"""True removes at once, a number keeps that many (0 none, as True), False keeps it for ever.

A count holds for the whole queue and state. Only jobs that are kept for ever are neither counted nor removed.
"""


class Retention(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored form of a `Keep`."""

    age: Milliseconds | None = None
    count: Annotated[int, msgspec.Meta(ge=0, le=MOST_KEPT)] | None = None

    @property
    def removes_at_once(self) -> bool:
        return self.count == 0 or self.age == 0

    def until(self, finished_at: Instant) -> Instant | None:
        """When the age removes it; None for never, the last instant if only a count can remove it."""
        if self.age is None:
            return None if self.count is None else LAST_INSTANT
        return min(finished_at + self.age, LAST_INSTANT)


FOREVER: Final = Retention()
NOT_AT_ALL: Final = Retention(count=0)
KEEP_COMPLETED: Final = Retention(age=24 * 3_600_000, count=10_000)
KEEP_FAILED: Final = Retention(age=7 * 24 * 3_600_000)


def retention(option: str, given: object) -> Retention:
    match given:
        case True:
            return NOT_AT_ALL
        case False:
            return FOREVER
        case int() if given >= 0:
            return Retention(count=whole(option, given, 0, MOST_KEPT))
        case Keep(age=age, count=count):
            if count is not None:
                whole(option, count, 0, MOST_KEPT)
            return Retention(None if age is None else milliseconds(age, option), count)
    raise InvalidOption(option, f"cannot be {shown(given)}: use True, False, a count, or Keep(age=..., count=...)")
