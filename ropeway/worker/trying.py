"""Trying a step or a phase of a handler: its time limit, and the errors after which it is not tried again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import AttemptTimeout, JobFailed, LockLost, Postponed, SignalTimeout, Unrecoverable
from ..job.backoff import Backoff
from ..job.durations import Duration
from ..job.numbers import whole
from ..job.options import MOST_ATTEMPTS, read_backoff_in_place, read_timeout

NOT_TRIED_AGAIN: Final = (Postponed, LockLost, Unrecoverable, JobFailed, SignalTimeout)
"""The job is given back or lost, or another try would end in the same way."""
Watch: TypeAlias = Callable[[float, str], "asyncio.TimerHandle | None"]
"""Gives the job up if work is still running some time after this many seconds; its end cancels that."""
TryAgain: TypeAlias = Callable[[str, Exception, float | None], Awaitable[bool]]
"""`JobRun.try_again`: takes what failed, its error and the pause before another try."""


class Tries(NamedTuple):
    """The tries of a step or phase within one attempt of its job: how many at most, and the backoff between them."""

    most: int
    backoff: Backoff | None

    def pause_after(self, failed: int) -> float | None:
        """Seconds until the next try, after so many that failed; None if there is none."""
        if failed >= self.most:
            return None
        if self.backoff is None:
            return 0.0
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        return self.backoff.after(failed, luck) / 1000


_ONE: Final = Tries(1, None)


def read_tries(attempts: int, backoff: Backoff | Duration | None) -> Tries:
    if backoff is None and type(attempts) is int and attempts == 1:
        return _ONE
    return Tries(whole("attempts", attempts, 1, MOST_ATTEMPTS), read_backoff_in_place(backoff))


def read_limit(timeout: Duration | None) -> float | None:
    """The timeout of a step, in seconds."""
    _, limit = read_timeout("timeout", timeout)
    return None if limit is None else limit / 1000


async def within(limit: float | None, work: Awaitable[Any], watch: Watch, what: str) -> Any:
    """The result of the work; cancels it after `limit` seconds and raises `AttemptTimeout`, even if it returns then."""
    if limit is None:
        return await work
    deadline = asyncio.timeout(limit)
    watching = watch(limit, what)
    try:
        async with deadline:
            result = await work
    except TimeoutError:
        if deadline.expired():
            raise AttemptTimeout(limit, what) from None
        raise
    finally:
        if watching is not None:
            watching.cancel()
    if deadline.expired() or asyncio.get_running_loop().time() > (deadline.when() or 0):
        # It ignored the cancellation, or blocked the loop.
        raise AttemptTimeout(limit, what)
    return result


def refuse_late(began: float, limit: float | None, what: str) -> None:
    """Fails a step that ran in a thread or process for longer than its timeout."""
    if limit is not None and time.monotonic() - began > limit:
        raise AttemptTimeout(limit, what)
