"""Where handlers run (loop, thread or process), and the common base of the jobs they are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ..job.extras import Origin
from ..job.record import JobRecord

RunIn: TypeAlias = Literal["loop", "thread", "process"]
KIND_GIVEN: Final[dict[RunIn, str]] = {"loop": "Job", "thread": "SyncJob", "process": "ProcessJob"}
GIVEN: Final = f"async def is given a {KIND_GIVEN['loop']}, def a {KIND_GIVEN['thread']}"


class RunningJob:
    """Base of the jobs that handlers receive. A task whose first parameter is one receives it; callers omit it."""

    __slots__ = ()

    run_in: ClassVar[RunIn]
    """Where handlers that receive this class run."""
    record: JobRecord

    @property
    def schedule(self) -> str | None:
        """The id of the schedule that made it."""
        return None if self.record.extras is None else self.record.extras.schedule

    @property
    def origin(self) -> Origin | None:
        """Of a dead letter or a delivery: the job whose end added it."""
        return None if self.record.extras is None else self.record.extras.origin


def is_async(function: Callable[..., Any]) -> bool:
    if isinstance(function, type):
        # What its objects define is not what makes them.
        return False
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async def
    )
