"""Packs updates and markings for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from ...job.instants import Instant
from ...job.marks import Marking, Notice
from ...store.values import JobUpdate
from .encoding import given, pack
from .ids import all_shortened, shortened

T = TypeVar("T")

_COMPARED: Final = 4
_NOTHING: Final = Marking()


def packed_updates(updates: Sequence[JobUpdate], now: Instant | None) -> bytes:
    """The argument of `update`, for updates of any kind."""
    return pack((given(now), [_update_of(update) for update in updates]))


def packed_together(updates: Sequence[JobUpdate], now: Instant | None) -> bytes | None:
    """The argument of `update_many`; None if that cannot take them."""
    ids = [update.id for update in updates]
    if len({*ids}) < len(ids) or any(map(_is_unusual, updates)):
        return None
    reports, which_report, markings, which_marking = _shared(updates)
    tokens = [update.token for update in updates]
    return pack((given(now), all_shortened(ids), tokens, reports, which_report, markings, which_marking))


def _shared(updates: Sequence[JobUpdate]) -> tuple[list[Any], list[int], list[Any], list[int]]:
    """What updates report, and the marks that they write, without repetitions, each with the number of every update.

    Numbers are from 1 on; 0 if it writes no marks. Jobs in one phase of a pipeline share objects, and report alike also
    if each has a result of its own. So they are compared by identity; `updates` keeps them alive.
    """
    reports: list[tuple[str | bool, list[str]]] = []
    markings: list[tuple[Any, ...]] = []
    which_report: list[int] = []
    which_marking: list[int] = []
    known_reports: dict[tuple[str | None, int], int] = {}
    known_markings: dict[int, int] = {}
    for update in updates:
        marking = update.marking or _NOTHING
        report = update.progress, id(marking.notices)
        if report not in known_reports:
            reports.append((False if update.progress is None else update.progress, notices_of(marking.notices)))
            known_reports[report] = len(reports)
        which_report.append(known_reports[report])
        place = id(marking)
        if place not in known_markings:
            known_markings[place] = 0 if only_announces(marking) else len(markings) + 1
            if known_markings[place]:
                markings.append(marking_of(marking))
        which_marking.append(known_markings[place])
    return reports, which_report, markings, which_marking


def _is_unusual(update: JobUpdate) -> bool:
    return bool(
        update.token is None
        or update.data is not None
        or update.log
        or update.alone is not None
        or update.clears_stalls
        or update.children
        or update.adds
    )


def _update_of(update: JobUpdate) -> tuple[Any, ...]:
    progress = False if update.progress is None else update.progress
    data = False if update.data is None else update.data
    # A text, because Lua leaves out what is nil and has no third truth.
    company = "" if update.alone is None else "alone" if update.alone else "beside"
    packed = (
        shortened(update.id),
        update.token or False,
        progress,
        data,
        update.log,
        update.keep_logs,
        company,
        update.clears_stalls,
    )
    if update.marking is None:
        return packed
    return (*packed, marking_of(update.marking), notices_of(update.marking.notices))


def only_announces(marking: Marking) -> bool:
    return not (marking.marks or marking.forgets)


def marking_of(marking: Marking) -> tuple[Any, ...]:
    """Names and values in turn, and names to delete: see lua/lib/marking.lua."""
    return [text for mark in marking.marks for text in (mark.name, mark.value)], marking.forgets


def notices_of(notices: Sequence[Notice]) -> list[str]:
    """Events and their details in turn."""
    return [text for notice in notices for text in (notice.what, notice.detail)]


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
