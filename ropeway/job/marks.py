"""Marks: named values that a running job leaves in the store, for its later attempts and for readers.

Phases, steps, durable sleeps and signals are all marks. Stores keep them by name and read none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..errors import InvalidInput, InvalidName
from .codec import JsonText
from .instants import Instant
from .names import is_printable, plain

MOST_MARKS: Final = 1_000
"""Most marks of one job."""
MARKS_LIMIT: Final = 8 * 1024 * 1024
"""Most bytes of all marks of one job."""
MOST_SIGNALS: Final = 100
"""Most signals of one job, so that none of them takes the room of its steps."""
LONGEST_MARK: Final = 255
"""Most characters of a mark's name."""
STEP: Final = "step:"
SLEEP: Final = "sleep:"
WAIT: Final = "wait:"
SIGNAL: Final = "signal:"
GATHER: Final = "gather:"
PHASE: Final = "phase:"
"""This and those above: how the names of marks begin, by what they are for."""
PIPELINE: Final = "pipeline"
"""The mark with the names of the phases with which the job began."""
FROM_PHASE: Final = "from-phase"
"""The mark of a job that was retried from a phase, and has not begun again: any pipeline may run it."""
_SCOPE: Final = "\x1f"
"""Between the name of a phase and that of its step, sleep, wait or gather."""
_SCOPED: Final = (STEP, SLEEP, WAIT, GATHER)
"""Marks whose names say in which phase they were left."""


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value by its name. A second mark of the same name replaces the first."""

    name: str
    value: JsonText
    at: Instant = 0
    """When it was written, by the store's clock; ignored when it is given."""


class Notice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event about the job: one of `NOTICES`, with details."""

    what: str
    detail: JsonText = "{}"
    """An object."""


class Marking(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Marks to write and to delete, and what to announce, in one step."""

    marks: tuple[Mark, ...] = ()
    forgets: tuple[str, ...] = ()
    """Names of marks to delete, before others are written."""
    notices: tuple[Notice, ...] = ()

    def announces(self, earlier: Marking) -> bool:
        """True if it begins with what another one announces, because it was made by `earlier.then(...)`."""
        return self.notices[: len(earlier.notices)] == earlier.notices

    def then(self, later: Marking) -> Marking:
        """Both in one step, as if `later` came after this."""
        kept = [mark for mark in self.marks if mark.name not in later.forgets] if later.forgets else self.marks
        return Marking((*kept, *later.marks), (*self.forgets, *later.forgets), (*self.notices, *later.notices))


def check_bounds(known: Mapping[str, JsonText], marks: Sequence[Mark]) -> None:
    """Refuses marks to be written, if the job would have too many of them, or too large ones."""
    after = {**known, **{mark.name: mark.value for mark in marks}}
    signals = sum(name.startswith(SIGNAL) for name in after)
    if len(after) > MOST_MARKS:
        kinds = "steps, sleeps, waits, gathers, phases and signals"
        raise InvalidInput(f"a job has at most {MOST_MARKS:,} {kinds} together: let one step do more")
    if signals > MOST_SIGNALS and any(mark.name.startswith(SIGNAL) for mark in marks):
        raise InvalidInput(f"a job has at most {MOST_SIGNALS} signals: send several values as the data of one")
    if sum(map(size_of, after.values())) > MARKS_LIMIT:
        raise InvalidInput(
            f"the results of a job's steps and its signals have at most {MARKS_LIMIT:,} bytes in all: "
            "store large ones elsewhere, and keep where they are"
        )


def size_of(text: JsonText) -> int:
    """In bytes, encoded as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def scoped(kind: str, phase: str | None, name: str) -> str:
    """The name of a mark that a phase of a handler left, or a handler without phases."""
    # No name has a control character.
    return kind + name if phase is None else f"{kind}{phase}{_SCOPE}{name}"


def phase_and_name(mark: str, kind: str) -> tuple[str | None, str]:
    """The opposite of `scoped`."""
    phase, scope, name = mark.removeprefix(kind).rpartition(_SCOPE)
    return (phase if scope else None), name


def scoped_kind(mark: str) -> str | None:
    """The prefix of the name of a mark, if a step, sleep, wait or gather left it; else None."""
    return next((kind for kind in _SCOPED if mark.startswith(kind)), None)


def mark_name(given: object, kind: str) -> str:
    """Checks the name of a step, phase, sleep or signal that a user gave; `kind` is how its mark begins."""
    # The marks of a phase add an ending to its name, unnamed sleeps and gathers a number.
    longest = LONGEST_MARK - len(kind) - 10
    if isinstance(given, str) and 0 < len(given) <= longest and is_printable(given):
        return plain(given)
    what = f"{kind.rstrip(':')} name"
    raise InvalidName(what, given, f"use text of 1 to {longest} characters without control characters")
