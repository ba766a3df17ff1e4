"""Which function runs which job."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ..errors import InvalidOption
from ..job.names import job_name
from .child import ProcessJob
from .job import Job, SyncJob
from .processes import Source, source_of

AsyncHandler: TypeAlias = Callable[[Job], Awaitable[Any]]
SyncHandler: TypeAlias = Callable[[SyncJob], Any]
ProcessHandler: TypeAlias = Callable[[ProcessJob], Any]
HandlerFunction: TypeAlias = "AsyncHandler | SyncHandler | InProcess"
RunIn: TypeAlias = Literal["loop", "thread", "process"]

EVERY_NAME: Final = "*"


class InProcess(NamedTuple):
    function: ProcessHandler


def in_process(function: ProcessHandler) -> InProcess:
    """Makes a handler run in processes, which can crash or be killed and hurt nobody.

    Use it as in `Worker(queue, {"crunch": in_process(crunch)})`. The function, `def` or `async def`, must stand at the
    top of a module. A cancel or a timeout kills its process.
    """
    return InProcess(function)


class Handler(NamedTuple):
    function: Callable[[Any], Any]
    run_in: RunIn
    source: Source | None = None


class Handlers:
    """Functions by job name; the one named `*` takes every other name."""

    def __init__(self, given: HandlerFunction | Mapping[str, HandlerFunction] | None) -> None:
        self._by_name: dict[str, Handler] = {}
        self._other: Handler | None = None
        if given is None:
            return
        functions = given if isinstance(given, Mapping) else {EVERY_NAME: given}
        for name, function in functions.items():
            self.register(name, function)

    def register(self, name: str, function: HandlerFunction) -> None:
        if isinstance(function, InProcess):
            handler = Handler(function.function, "process", source_of(function.function))
        elif callable(function):
            handler = Handler(function, "loop" if _is_async(function) else "thread")
        else:
            raise InvalidOption("handler", f"for {name!r} is {function!r:.80}: give a function that takes a job")
        if name == EVERY_NAME:
            self._other = handler
        else:
            self._by_name[job_name(name)] = handler

    def find(self, name: str) -> Handler | None:
        return self._by_name.get(name, self._other)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names to claim; None for every name."""
        return None if self._other else tuple(self._by_name)

    def __bool__(self) -> bool:
        return bool(self._by_name or self._other)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async def
    )
