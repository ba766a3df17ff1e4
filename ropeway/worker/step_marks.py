"""Steps of a handler, as marks: what is stored under which name, and within which bounds."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final, get_type_hints

import msgspec

from ..errors import AttemptTimeout, InvalidInput
from ..job.codec import Json, JsonText, decode, encode
from ..job.instants import Instant
from ..job.marks import GATHER, MARKS_LIMIT, MOST_MARKS, SLEEP, Mark, check_bounds, mark_name, scoped, size_of
from ..job.record import JobRecord
from ..job.shape import Shape
from ..job.steps import StepResult
from ..showing import shown

_ANY: Final[Shape[Any]] = Shape(Any)


class StepMarks:
    """The marks of one attempt: those that were there when it began, and those that it wrote since."""

    __slots__ = ("_gathers", "_phase", "_size", "_sleeps", "_used", "values")

    def __init__(self, record: JobRecord) -> None:
        self.values: dict[str, JsonText] = {mark.name: mark.value for mark in record.marks} if record.marks else {}
        self._size = sum(map(size_of, self.values.values())) if self.values else 0
        """Bytes of all values, and of those that were replaced."""
        self._used: set[str] | None = None
        self._phase: str | None = None
        self._sleeps = 0
        self._gathers = 0

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(Mark(name, value) for name, value in self.values.items())

    def begin_phase(self, name: str) -> None:
        """Begins a phase, or tries it again. Names are those of the phase: others may use the same."""
        self._phase = name
        self._used = None
        self._sleeps = self._gathers = 0

    def use(self, kind: str, name: object) -> str:
        """The name of a mark that the handler uses now, for the first time in this attempt or phase."""
        mark = scoped(kind, self._phase, mark_name(name, kind))
        if self._used is None:
            self._used = set()
        if mark in self._used:
            raise InvalidInput(f"{name!r} was used twice by this attempt: give each {kind[:-1]} its own name")
        self._used.add(mark)
        return mark

    def next_sleep(self) -> str:
        """The mark of a sleep without a name."""
        self._sleeps += 1
        return scoped(SLEEP, self._phase, f"#{self._sleeps}")

    def next_gather(self) -> str:
        self._gathers += 1
        return scoped(GATHER, self._phase, f"#{self._gathers}")

    def read(self, mark: str) -> Json:
        return decode(self.values[mark])

    def checked(self, *marks: Mark) -> tuple[Mark, ...]:
        """Marks to be written; refuses them if the job would have too many, or too large ones."""
        if len(self.values) + len(marks) > MOST_MARKS or self._size + _size_of_all(marks) > MARKS_LIMIT:
            check_bounds(self.values, marks)
        return marks

    def note(self, marks: Iterable[Mark]) -> None:
        """`checked` and `written` in one."""
        size = self._size
        for mark in marks:
            size += size_of(mark.value)
        if size > MARKS_LIMIT or len(self.values) + 2 > MOST_MARKS:
            self.checked(*marks)
        for mark in marks:
            self.values[mark.name] = mark.value
        self._size = size

    def written(self, *marks: Mark) -> None:
        for mark in marks:
            self.values[mark.name] = mark.value
        self._size += _size_of_all(marks)


def _size_of_all(marks: Iterable[Mark]) -> int:
    return sum([size_of(mark.value) for mark in marks])


def result_shape(function: object) -> Shape[Any]:
    """How results of a step's function become JSON and back, by its return annotation."""
    if not callable(function):
        problem = f"a step takes a function, and after it the arguments, not {shown(function)}"
        raise InvalidInput(f"{problem}: job.step(name, function, ...)")
    try:
        annotation = get_type_hints(function).get("return", Any)
        return _ANY if annotation is Any else Shape(annotation)
    except Exception:  # noqa: BLE001 - names that exist only for type checkers, and annotations of any kind
        return _ANY


def refuse_late(began: float, limit: float | None) -> None:
    """Fails a step that ran in a thread or process for longer than its timeout."""
    if limit is not None and time.monotonic() - began > limit:
        raise AttemptTimeout(limit)


def step_value(shape: Shape[Any], result: Any, took: float, size_limit: int) -> JsonText:
    plain = shape.dump(result, "result")
    return encode({"result": plain, "took": round(took, 4)}, "result", size_limit)


def load_step(shape: Shape[Any], text: JsonText) -> Any:
    return shape.load(msgspec.json.decode(text, type=StepResult).result)


def until_of(marks: StepMarks, mark: str) -> Instant | None:
    """The instant that a sleep or a wait lasts until; None if it has not begun."""
    found = marks.values.get(mark)
    return None if found is None else msgspec.json.decode(found, type=Instant)
