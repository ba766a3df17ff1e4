"""Trying a step or a phase of a handler: its time limit, and the errors after which it is not tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from ..errors import AttemptTimeout, JobFailed, LockLost, Postponed, Unrecoverable

NOT_TRIED_AGAIN: Final = (Postponed, LockLost, Unrecoverable, JobFailed)
"""The job is given back or lost, or another try would end in the same way."""


async def within(limit: float | None, work: Awaitable[Any]) -> Any:
    """The result of the work; cancels it after `limit` seconds and raises `AttemptTimeout`."""
    if limit is None:
        return await work
    deadline = asyncio.timeout(limit)
    try:
        async with deadline:
            return await work
    except TimeoutError:
        if deadline.expired():
            raise AttemptTimeout(limit) from None
        raise
