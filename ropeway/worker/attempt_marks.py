"""The marks of one attempt: which there are, under which names, and whether there is room for more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from ..errors import InvalidInput, InvalidName
from ..job.codec import JsonText
from ..job.instants import Instant
from ..job.marks import (
    GATHER,
    MARKS_LIMIT,
    MOST_MARKS,
    SIGNAL,
    SLEEP,
    WAIT,
    Mark,
    check_bounds,
    mark_name,
    scoped,
    size_of,
)
from ..job.record import JobRecord
from ..job.steps import WaitEnd, read_wait

_NUMBER: Final = "#"
"""How the names of sleeps and gathers begin that are told apart by their order."""


class AttemptMarks:
    """The marks of one attempt: those that were there when it began, and those that it wrote since."""

    __slots__ = (
        "_gathers", "_none_runs", "_phase", "_reserved", "_running", "_size", "_sleeps", "_used", "values",
    )  # fmt: skip

    def __init__(self, record: JobRecord) -> None:
        self.values: dict[str, JsonText] = {mark.name: mark.value for mark in record.marks} if record.marks else {}
        self._size = sum(map(size_of, self.values.values())) if self.values else 0
        """Bytes of all values, of those that were replaced, and of those that are being written."""
        self._reserved: dict[str, JsonText] = {}
        """Marks that are being written."""
        self._used: set[str] | None = None
        self._phase: str | None = None
        self._sleeps = 0
        self._gathers = 0
        self._running = 0
        """Steps whose functions run, or whose results are being written."""
        self._none_runs: asyncio.Event | None = None

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(Mark(name, value) for name, value in self.values.items())

    def until_of(self, mark: str) -> Instant | None:
        """The instant that a sleep or a wait lasts until; None if it has not begun."""
        found = self.values.get(mark)
        return None if found is None else msgspec.json.decode(found, type=Instant)

    def end_of_wait(self, mark: str) -> WaitEnd | None:
        """How a wait ended; None if it has not."""
        found = self.values.get(mark)
        end = None if found is None else read_wait(found)
        return end if isinstance(end, WaitEnd) else None

    def begin_phase(self, name: str) -> None:
        """Begins a phase, or tries it again. Names are those of the phase: others may use the same."""
        self._phase = name
        self._used = None
        self._sleeps = self._gathers = 0

    def use(self, kind: str, name: object) -> str:
        """The name of a mark that the handler uses now, for the first time in this attempt or phase."""
        mark = scoped(kind, self._phase, mark_name(name, kind))
        if kind == SLEEP and str(name).startswith(_NUMBER):
            raise InvalidName("sleep name", name, f"names that begin with {_NUMBER} are those of sleeps without a name")
        if self._used is None:
            self._used = set()
        if mark in self._used:
            raise InvalidInput(f"{name!r} was used twice by this attempt: give each {kind[:-1]} its own name")
        self._used.add(mark)
        return mark

    def next_sleep(self) -> str:
        """The mark of a sleep without a name."""
        self._sleeps += 1
        return scoped(SLEEP, self._phase, f"{_NUMBER}{self._sleeps}")

    def next_gather(self) -> str:
        self._gathers += 1
        return scoped(GATHER, self._phase, f"{_NUMBER}{self._gathers}")

    def unanswered_signals(self) -> list[str]:
        """The names of signals that came, and that no wait of the handler, or of this phase, has answered."""
        names = [mark.removeprefix(SIGNAL) for mark in self.values if mark.startswith(SIGNAL)]
        return [name for name in names if scoped(WAIT, self._phase, name) not in self.values]

    def reserve(self, marks: Sequence[Mark]) -> None:
        """Takes the room of marks before they are written; refuses them if they are too many or too large for the job.

        `written` or `release` must follow.
        """
        self._take_room(marks)
        for mark in marks:
            self._reserved[mark.name] = mark.value

    def written(self, marks: Sequence[Mark]) -> None:
        for mark in marks:
            self._reserved.pop(mark.name, None)
            self.values[mark.name] = mark.value

    def release(self, marks: Sequence[Mark]) -> None:
        """Frees the room of marks that were not written."""
        for mark in marks:
            self._reserved.pop(mark.name, None)
            self._size -= size_of(mark.value)

    def add(self, marks: Sequence[Mark]) -> None:
        """`reserve` and `written` in one; the marks are known also if they are refused."""
        values, size = self.values, self._size
        for mark in marks:
            values[mark.name] = mark.value
            size += size_of(mark.value)
        self._size = size
        if size > MARKS_LIMIT or len(values) + len(self._reserved) > MOST_MARKS:
            check_bounds({**values, **self._reserved}, marks)

    @property
    def has_running_steps(self) -> bool:
        return self._running > 0

    def step_began(self) -> None:
        self._running += 1

    def step_ended(self) -> None:
        self._running -= 1
        if self._none_runs is not None and not self._running:
            self._none_runs.set()

    async def wait_for_steps(self) -> bool:
        """Returns when no step runs; True if it had to wait for that."""
        # Lets those begin that were called beside the caller, as by `asyncio.gather`.
        await asyncio.sleep(0)
        has_waited = False
        while self._running:
            has_waited = True
            if self._none_runs is None:
                self._none_runs = asyncio.Event()
            self._none_runs.clear()
            await self._none_runs.wait()
        return has_waited

    def _take_room(self, marks: Sequence[Mark]) -> None:
        size = self._size
        for mark in marks:
            size += size_of(mark.value)
        if size > MARKS_LIMIT or len(self.values) + len(self._reserved) + len(marks) > MOST_MARKS:
            check_bounds({**self.values, **self._reserved}, marks)
        self._size = size
