"""Where handlers run (loop, thread or process), and the common base of the jobs they are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypeAlias

RunIn: TypeAlias = Literal["loop", "thread", "process"]
KIND_GIVEN: Final[dict[RunIn, str]] = {"loop": "Job", "thread": "SyncJob", "process": "ProcessJob"}
GIVEN: Final = f"async def is given a {KIND_GIVEN['loop']}, def a {KIND_GIVEN['thread']}"


class RunningJob:
    """Base of the jobs that handlers receive. A task whose first parameter is one receives it; callers omit it."""

    __slots__ = ()

    run_in: ClassVar[RunIn]
    """Where handlers that receive this class run."""


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async def
    )
