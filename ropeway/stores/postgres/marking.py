"""Marks that updates and outcomes write, what they announce, and marks that were read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from ...job.marks import Mark, Marking
from .parameters import Parameter, texts

Written: TypeAlias = list[list[Any]]
"""Marks as `sql/lib/marks_of.sql` returns them, decoded."""

_encode: Final = msgspec.json.Encoder().encode
_read: Final[Callable[[str], Written]] = msgspec.json.Decoder(Written).decode


class Announced(NamedTuple):
    """Event entries, as `sql/lib/announce.sql` takes them."""

    kinds: list[str] | None = None
    jobs: list[str] | None = None
    positions: list[str | None] | None = None

    def parameters(self) -> tuple[Parameter, Parameter, Parameter]:
        return texts(self.kinds), texts(self.jobs), texts(self.positions)


class Entries:
    """Collects the events of updates or outcomes in few entries, each of one kind."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], tuple[list[str], list[int]]] = {}

    def add(self, rank: int, what: str, position: int, id: str, detail: str) -> None:
        """An event of what is at a position, from 1 on. Entries are ordered by rank: a job's events have several."""
        entry = self._entries.get((rank, what))
        if entry is None:
            entry = self._entries[rank, what] = [], []
        entry[0].append(f'["{id}",{detail}]')
        entry[1].append(position)

    def announced(self, total: int) -> Announced:
        if not self._entries:
            return Announced()
        entries = sorted(self._entries.items(), key=lambda entry: entry[0][0])
        return Announced(
            [what for (_, what), _ in entries],
            [",".join(jobs) for _, (jobs, _) in entries],
            [
                None if len(positions) == total else f"{{{','.join(map(str, positions))}}}"
                for _, (_, positions) in entries
            ],
        )


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
