"""Where handlers run, and what the jobs that they are given there share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypeAlias

RunIn: TypeAlias = Literal["loop", "thread", "process"]
KIND_GIVEN: Final[dict[RunIn, str]] = {"loop": "Job", "thread": "SyncJob", "process": "ProcessJob"}
GIVEN: Final = f"async def is given a {KIND_GIVEN['loop']}, def a {KIND_GIVEN['thread']}"


class RunningJob:
    """A job as its handler holds it. A task whose first parameter is one is given it; its callers do not see it."""

    __slots__ = ()

    run_in: ClassVar[RunIn]
    """Where handlers are given this kind."""


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async def
    )
