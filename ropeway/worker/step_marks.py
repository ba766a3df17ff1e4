"""Steps of a handler, as marks: what is stored under which name, and within which bounds."""

from __future__ import annotations

import time
from itertools import count
from typing import Any, Final, get_type_hints

import msgspec

from ..errors import AttemptTimeout, InvalidInput
from ..job.codec import Json, JsonText, decode, encode
from ..job.instants import Instant
from ..job.marks import GATHER, SLEEP, Mark, check_bounds, mark_name
from ..job.record import JobRecord
from ..job.shape import Shape
from ..job.steps import StepResult
from ..showing import shown

_ANY: Final[Shape[Any]] = Shape(Any)


class StepMarks:
    """The marks of one attempt: those that were there when it began, and those that it wrote since."""

    def __init__(self, record: JobRecord) -> None:
        self.values: dict[str, JsonText] = {mark.name: mark.value for mark in record.marks}
        self._used: set[str] = set()
        self._phase: str | None = None
        self._used_before: frozenset[str] = frozenset()
        """Names that were used before the current phase began."""
        self._sleeps = count(1)
        self._gathers = count(1)

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(Mark(name, value) for name, value in self.values.items())

    def begin_phase(self, name: str) -> None:
        """Begins a phase, or tries it again: it may use the names of its earlier tries.

        Later attempts leave out the phases that completed. So sleeps and gathers without a name are counted in their
        phase, or they would be taken for those of another one.
        """
        if name != self._phase:
            self._phase, self._used_before = name, frozenset(self._used)
        self._used = set(self._used_before)
        self._sleeps, self._gathers = count(1), count(1)

    def use(self, kind: str, name: object) -> str:
        """The name of a mark that the handler uses now, for the first time in this attempt."""
        mark = kind + mark_name(name, kind)
        if mark in self._used:
            raise InvalidInput(f"{name!r} was used twice by this attempt: give each {kind[:-1]} its own name")
        self._used.add(mark)
        return mark

    def next_sleep(self) -> str:
        """The mark of a sleep without a name."""
        return f"{SLEEP}{self._numbered(next(self._sleeps))}"

    def next_gather(self) -> str:
        return f"{GATHER}{self._numbered(next(self._gathers))}"

    def _numbered(self, number: int) -> str:
        return f"#{number}" if self._phase is None else f"{self._phase}#{number}"

    def read(self, mark: str) -> Json:
        return decode(self.values[mark])

    def checked(self, *marks: Mark) -> tuple[Mark, ...]:
        """Marks to be written; refuses them if the job would have too many, or too large ones."""
        check_bounds(self.values, marks)
        return marks

    def written(self, *marks: Mark) -> None:
        self.values.update({mark.name: mark.value for mark in marks})


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
