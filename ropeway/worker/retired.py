"""Finished jobs as callbacks of retention get them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeAlias

import msgspec

from ..job.codec import Json
from ..job.states import State


class RetiredJob(msgspec.Struct, frozen=True):
    """A finished job that became stale or was deleted, as `on_stale` and `on_delete` get it."""

    queue: str
    id: str
    name: str
    data: Json
    state: State
    """How it ended."""
    finished_at: datetime
    attempts_made: int
    result: Json = None
    reason: str | None = None


RetentionCallback: TypeAlias = Callable[[RetiredJob], Awaitable[None] | None]
"""Takes the job. If it raises an error it is called again later, for about a day."""
