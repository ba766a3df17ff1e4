"""Packs updates and markings for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from ...job.instants import Instant
from ...job.marks import Marking
from ...store.values import JobUpdate
from .encoding import given, pack
from .ids import all_shortened, shortened

T = TypeVar("T")

_COMPARED: Final = 4


def packed_updates(updates: Sequence[JobUpdate], now: Instant | None) -> bytes:
    """The argument of `update`, for updates of any kind."""
    return pack((given(now), [_update_of(update) for update in updates]))


def packed_together(updates: Sequence[JobUpdate], now: Instant | None) -> bytes | None:
    """The argument of `update_many`; None if that cannot take them."""
    ids = [update.id for update in updates]
    if len({*ids}) < len(ids) or any(map(_is_unusual, updates)):
        return None
    changes, which = different([(update.progress, update.marking) for update in updates])
    packed = [
        (False if progress is None else progress, False if marking is None else marking_of(marking))
        for progress, marking in changes
    ]
    return pack((given(now), all_shortened(ids), [update.token for update in updates], packed, which))


def _is_unusual(update: JobUpdate) -> bool:
    return bool(
        update.token is None
        or update.data is not None
        or update.log
        or update.alone is not None
        or update.children
        or update.adds
    )


def _update_of(update: JobUpdate) -> tuple[Any, ...]:
    progress = False if update.progress is None else update.progress
    data = False if update.data is None else update.data
    # A text, because Lua leaves out what is nil and has no third truth.
    company = "" if update.alone is None else "alone" if update.alone else "beside"
    packed = shortened(update.id), update.token or False, progress, data, update.log, update.keep_logs, company
    return packed if update.marking is None else (*packed, marking_of(update.marking))


def marking_of(marking: Marking) -> tuple[Any, ...]:
    """Names and values in turn, names to delete, events and their details in turn: see lua/lib/marking.lua."""
    marks = [text for mark in marking.marks for text in (mark.name, mark.value)]
    return marks, marking.forgets, [text for notice in marking.notices for text in (notice.what, notice.detail)]


def different(values: Sequence[T]) -> tuple[list[T], list[int]]:
    """The values that are different, and for each value which of these it is, from 1.

    What jobs write together is mostly the same for many. Only the last few are compared, so some may be there twice.
    """
    found: list[T] = []
    which: list[int] = []
    for value in values:
        last = len(found)
        for number in range(last, max(0, last - _COMPARED), -1):
            if found[number - 1] == value:
                break
        else:
            found.append(value)
            number = last + 1
        which.append(number)
    return found, which
