"""Marks that updates and outcomes write, what they announce, and marks that were read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from ...job.marks import Mark, Marking
from .parameters import NULL, Parameter, texts

Written: TypeAlias = list[list[Any]]
"""Marks as `sql/lib/marks_of.sql` returns them, decoded."""

_encode: Final = msgspec.json.Encoder().encode
_read: Final[Callable[[str], Written]] = msgspec.json.Decoder(Written).decode


class Announced(NamedTuple):
    """Event entries, as `sql/lib/announce.sql` takes them."""

    kinds: list[str] | None = None
    details: list[str | None] | None = None
    jobs: list[str | None] | None = None
    positions: list[str | None] | None = None

    def parameters(self) -> tuple[Parameter, ...]:
        if self.kinds is None:
            return NOTHING_ANNOUNCED
        return texts(self.kinds), texts(self.details), texts(self.jobs), texts(self.positions)


NOTHING_ANNOUNCED: Final = (NULL,) * 4


class Entries:
    """Collects the events of updates or outcomes in few entries, each of one kind.

    Jobs that announce the same are added together, and stand in an entry by their positions, from 1 on.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], list[tuple[str, list[int]]]] = {}

    def add(self, rank: int, what: str, detail: str, positions: list[int]) -> None:
        """An event of the jobs at these positions. Entries are ordered by rank: a job's events have several."""
        self._entries.setdefault((rank, what), []).append((detail, positions))

    def announced(self, ids: Sequence[str]) -> Announced:
        if not self._entries:
            return Announced()
        kinds: list[str] = []
        details: list[str | None] = []
        jobs: list[str | None] = []
        places: list[str | None] = []
        for (_, what), groups in sorted(self._entries.items(), key=lambda entry: entry[0][0]):
            positions = groups[0][1] if len(groups) == 1 else sorted([each for _, group in groups for each in group])
            is_shared = len(groups) == 1 or all(detail == groups[0][0] for detail, _ in groups)
            kinds.append(what)
            details.append(groups[0][0] if is_shared else None)
            jobs.append(None if is_shared else _listed(groups, ids))
            places.append(None if len(positions) == len(ids) else f"{{{','.join(map(str, positions))}}}")
        return Announced(kinds, details, jobs, places)


def _listed(groups: Sequence[tuple[str, list[int]]], ids: Sequence[str]) -> str:
    found = sorted([(position, detail) for detail, positions in groups for position in positions])
    return ",".join([f'["{ids[position - 1]}",{detail}]' for position, detail in found])


class MarksTexts:
    """Encodes markings of many jobs, which often share them."""

    def __init__(self) -> None:
        # By identity; the markings are kept with their texts, so that no other gets the same one.
        self._known: dict[int, tuple[Marking, str | None]] = {}

    def of(self, marking: Marking | None) -> str | None:
        if marking is None:
            return None
        known = self._known.get(id(marking))
        if known is None:
            known = self._known[id(marking)] = marking, marks_text(marking)
        return known[1]


def marks_text(marking: Marking | None) -> str | None:
    """Names and values, as `sql/lib/write_held.sql` takes them; None if there are none."""
    if marking is None or not (marking.marks or marking.forgets):
        return None
    flat: list[str | None] = []
    for name in marking.forgets:
        flat += (name, None)
    for mark in marking.marks:
        flat += (mark.name, mark.value)
    return _encode(flat)[1:-1].decode()


def marks_read(written: Written) -> tuple[Mark, ...]:
    """The marks that are left of all that was written, by name."""
    newest: dict[str, Mark] = {}
    for at, *marks in written:
        for name, value in zip(marks[::2], marks[1::2], strict=True):
            newest[name] = Mark(name, value, at)
    return tuple(newest[name] for name in sorted(newest) if newest[name].value is not None)


def marks_in(text: str) -> tuple[Mark, ...]:
    return marks_read(_read(text))
