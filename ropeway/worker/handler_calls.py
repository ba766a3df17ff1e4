"""The calls of a job by its handler: none may be passed over when the handler, or a phase of it, returns."""

from __future__ import annotations

import inspect
from types import CoroutineType
from typing import Any, NoReturn

from ..errors import InvalidInput, Postponed
from ..showing import shown
from .raised import soonest


class HandlerCalls:
    """The calls that a handler, or a phase of it, has made in one attempt. Jobs whose handlers make none have none."""

    __slots__ = ("_given_back", "_made")

    def __init__(self) -> None:
        self._made: list[CoroutineType[Any, Any, Any]] = []
        self._given_back: list[Postponed] = []
        """The exceptions by which calls have given the slot back."""

    def note(self, call: CoroutineType[Any, Any, Any]) -> None:
        self._made.append(call)

    def give_back(self, postponed: Postponed) -> NoReturn:
        """Leaves the handler by the exception; the worker gives the job back, also if the handler catches it."""
        self._given_back.append(postponed)
        raise postponed

    def refuse_after_giving_back(self) -> None:
        """Raises `Postponed` again if the handler caught it, so that nothing comes before its time."""
        if self._given_back:
            raise soonest(self._given_back)

    def refuse_end(self) -> None:
        """Refuses that the handler or phase returns if it caught `Postponed`, or if a call of it has never begun."""
        self.refuse_after_giving_back()
        for call in self._made:
            if inspect.getcoroutinestate(call) == inspect.CORO_CREATED:
                name = inspect.getcoroutinelocals(call).get("name")
                call.close()
                given = "..." if name is None else f"{shown(name)}, ..."
                raise InvalidInput(f"job.{call.__name__}({given}) was called without await, and did nothing: await it")
