"""Calls through other libraries' connections: functions that take a JSON text and return a text, as any driver can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ...errors import InvalidOption, StoreRefused
from ...job.outcomes import Outcome
from ...job.record import NewJob
from ...store.answer_codes import answers_of
from ...store.values import Added, Answer
from .adding import answers_of as added_of
from .adding import arguments_of
from .failures import NO_FUNCTION
from .marking import Entries, marks_text
from .settling import jobs_added
from .statements import function
from .target import Target

_encode: Final = msgspec.json.Encoder().encode
_NOT_THERE: Final = frozenset({NO_FUNCTION, "3F000", "42P01"})
"""No such function, schema or table."""


class Call(NamedTuple):
    """A function and its argument."""

    function: str
    """With its schema."""
    text: str


class JsonCalls:
    """Builds the calls of one store, and reads their answers."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.database: str | None = None
        """The name of the store's database, once `prepare` has asked for it."""
        self.queue_ids: dict[str, int] = {}
        """Of queues that exist for certain."""

    def add(self, jobs: Sequence[NewJob]) -> Call:
        fields = arguments_of([jobs])._asdict()
        # A transaction that began before a queue was made cannot find its id.
        queues = [f"{queue}#{self.queue_ids.get(queue, '')}" for queue in fields["queues"]]
        return self._call("add_json", **{**fields, "queues": queues})

    def added(self, jobs: Sequence[NewJob], answer: str) -> list[Added]:
        return added_of([jobs], self._checked("tx", answer))[0]

    def complete(self, queue: str, outcome: Outcome) -> Call:
        marking = outcome.marking
        entries = Entries()
        for rank, notice in enumerate(marking.notices if marking else ()):
            entries.add(rank, notice.what, notice.detail, [1])
        announced = entries.announced([outcome.id])
        return self._call(
            "complete_json",
            queue=queue,
            id=outcome.id,
            token=outcome.token,
            result=outcome.result,
            age=outcome.keep.age,
            count=outcome.keep.count,
            adds=jobs_added([outcome]),
            marks=marks_text(marking),
            kinds=announced.kinds,
            details=announced.details,
        )

    def completed(self, answer: str) -> Answer:
        return answers_of(self._checked("using", answer))[0]

    def known(self, error: Exception) -> Exception | None:
        """A clearer error for one of a caller's driver; None if there is none."""
        if _code_of(error) not in _NOT_THERE:
            return None
        return StoreRefused(
            self._target.url,
            f"the connection given as tx is to a database that has no schema {self._target.schema!r} of this version: "
            "give one to the store's own database",
        )

    def _call(self, name: str, **fields: Any) -> Call:
        text = _encode({"database": self.database, **fields}).decode()
        return Call(function(name, self._target.schema), text)

    def _checked(self, option: str, answer: str) -> str:
        if answer.startswith("!"):
            raise InvalidOption(
                option, f"is a connection to the database {answer[1:]!r}, and this queue is on {self._target.url}"
            )
        return answer


def _code_of(error: BaseException | None) -> str | None:
    """The SQLSTATE, wherever the driver or a layer above it keeps it."""
    while error is not None:
        for place in (error, getattr(error, "orig", None)):
            code = getattr(place, "sqlstate", None) or getattr(place, "pgcode", None)
            if isinstance(code, str):
                return code
        error = error.__cause__
    return None
