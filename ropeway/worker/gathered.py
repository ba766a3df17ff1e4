"""What `job.gather` is given: the errors of what is no job say how to write it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..client.flows import Flow, FlowRequest
from ..client.handle import JobHandle
from ..client.new_jobs import Call
from ..client.sync_handle import SyncJobHandle
from ..errors import InvalidInput
from ..showing import shown

_UNPACK: Final = "unpack it by *, as in job.gather(*calls)"


def checked_calls(given: tuple[Any, ...]) -> tuple[FlowRequest, ...]:
    """Refuses what is no job, and closes the coroutines: nothing awaits them any more."""
    for each in given:
        if not isinstance(each, Call | Flow):
            what, instead = _mistake(each)
            _close(given)
            raise InvalidInput(f"job.gather takes task.call(...) and Flow(...), and not {what}: {instead}")
    return given


def _mistake(given: Any) -> tuple[str, str]:  # noqa: PLR0911 - one for each mistake
    """What was given, and what to write instead."""
    if isinstance(given, list | tuple):
        # One of coroutines is another mistake.
        inner = next((each for each in given if not isinstance(each, Call | Flow)), None)
        return (f"a {type(given).__name__} of them", _UNPACK) if inner is None else _mistake(inner)
    if inspect.iscoroutine(given):
        name = given.__name__
        if given.__qualname__ == f"Durable.{name}":
            return f"job.{name}(...)", "use asyncio.gather for steps and other calls of the job"
        return f"the coroutine {name}(...)", f"use {name}.call(...) for the job of a task, or asyncio.gather"
    if inspect.isawaitable(given):
        return shown(given), "use asyncio.gather for what runs in this handler"
    if callable(getattr(given, "call", None)):
        return f"the task {shown(given)} itself", "use its call(...), with its arguments"
    if isinstance(given, JobHandle | SyncJobHandle):
        return f"a job that was added before, {shown(given)}", "give task.call(...), and it is added as a child"
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return f"a {type(given).__name__} of them", _UNPACK
    if callable(given):
        return shown(given), "make it a task by @queue.task, and use its call(...)"
    return shown(given), "use task.call(...), which describes a job and calls nothing"


def _close(given: Iterable[Any]) -> None:
    for each in given:
        if inspect.iscoroutine(each):
            each.close()
        elif isinstance(each, list | tuple):
            _close(each)
