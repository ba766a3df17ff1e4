"""Detection of a blocked application loop, from the maintenance thread."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from ..context import CurrentJob
from ..job import Job
from ..service import Service, log
from .rescue import Rescue

SLOW_LOOP: Final = 0.25
"""Seconds without an answer after which the loop counts as slow; reported once it has answered."""
BLOCKED_LOOP: Final = 1.0
"""Seconds without an answer after which the loop counts as blocked; reported at once, and `Rescue` takes over."""
LOOK_EVERY: Final = 0.1
"""Seconds between two probes of the loop, while jobs run."""
WARN_EVERY: Final = 60.0
RELIEVE_EVERY: Final = 5.0
"""Seconds between two tries to hand jobs back, if the store could not be reached."""

FINAL_CALL_TIMEOUT: Final = 0.7
"""Seconds that each store call may take when the worker ends."""


class Shutdown(Protocol):
    """The part of `Runtime` that works without its loop."""

    def ends_at(self) -> float | None:
        """Deadline of the shutdown on the monotonic clock; None if none was requested."""
        ...

    async def end_without_loop(self) -> None:
        """Ends the worker; also the process, if the worker was started by `run`."""
        ...


Report: TypeAlias = Callable[[Job | None, float, str], None]
"""Takes the job whose handler blocks the loop (None: something else does), the seconds so far, and the stack."""


class LoopWatch(Service):
    """Probes the application's loop while jobs depend on it, and lets `Rescue` act while it is blocked."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: int,
        current: CurrentJob,
        rescue: Rescue,
        shutdown: Shutdown,
        report_slow: Report,
        report_blocked: Report,
    ) -> None:
        self.is_blocked = False
        self._loop = loop
        self._thread = thread
        self._current = current
        self._rescue = rescue
        self._shutdown = shutdown
        self._report_slow = report_slow
        self._report_blocked = report_blocked
        self._free_at = time.monotonic()
        """When the loop was last known not to be blocked."""

    async def step(self) -> None:
        if not self._rescue.is_needed and self._shutdown.ends_at() is None:
            self._free_at = time.monotonic()
            await asyncio.sleep(SLOW_LOOP)
            return
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._loop.call_soon_threadsafe(_answer, answered)
        if not await _within(SLOW_LOOP, answered):
            culprit, where = self._current.job, self._stack()
            if not await _within(BLOCKED_LOOP - SLOW_LOOP, answered):
                await self._attend(answered)
            # Measured from the last answer, because the loop may have been blocked before this probe: never too short,
            # and too long by no more than the time between two probes.
            self._report_slow(culprit, await answered - self._free_at, where)
        self._free_at = await answered
        await asyncio.sleep(LOOK_EVERY)

    async def _attend(self, answered: asyncio.Future[float]) -> None:
        """Acts in place of the blocked loop; returns when it answers."""
        self.is_blocked = True
        relieving = asyncio.create_task(self._relieve())
        warn_at = 0.0
        last_end: float | None = None
        try:
            while not answered.done():
                now = time.monotonic()
                if now >= warn_at:
                    warn_at = now + WARN_EVERY
                    self._report_blocked(self._current.job, now - self._free_at, self._stack())
                end = self._shutdown.ends_at()
                if end is not None and end != last_end:
                    last_end = end
                    log.warning("stopping: the loop is blocked, and has %.1f s to come back", max(0, end - now))
                if end is not None and now >= end and not relieving.cancelled():
                    await _cancel(relieving)
                    await self._give_up(now - self._free_at)
                await _within(SLOW_LOOP, answered)
        finally:
            self.is_blocked = False
            await _cancel(relieving)

    async def _relieve(self) -> None:
        while True:
            if handed_back := await self._rescue.relieve():
                log.warning("the loop is blocked: %d jobs that had not begun were handed back", handed_back)
            await asyncio.sleep(RELIEVE_EVERY)

    async def _give_up(self, seconds: float) -> None:
        """Ends a shutdown without the loop, once its deadline has passed."""
        given_up = await self._rescue.give_up(FINAL_CALL_TIMEOUT)
        log.error(
            "the loop has been blocked for %.0f s, and the worker ends without it: %d jobs were handed back, "
            "%d outcomes were settled",
            seconds,
            given_up.handed_back,
            given_up.settled,
        )
        if given_up.left:
            log.error("%d jobs could not be handed back or settled: they run again", given_up.left)
        await self._shutdown.end_without_loop()

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - there is no other way to see it
        return "".join(traceback.format_stack(frame, limit=5)) if frame else ""


def _answer(answered: asyncio.Future[float]) -> None:
    """Runs on the probed loop: answers the maintenance thread with the time."""
    with suppress(RuntimeError):  # The maintenance thread may have ended, and closed its loop.
        answered.get_loop().call_soon_threadsafe(_resolve, answered, time.monotonic())


def _resolve(answered: asyncio.Future[float], at: float) -> None:
    if not answered.done():
        answered.set_result(at)


async def _within(seconds: float, answered: asyncio.Future[float]) -> bool:
    await asyncio.wait([answered], timeout=seconds)
    return answered.done()


async def _cancel(task: asyncio.Task[None]) -> None:
    """Cancels it and waits for its end; raises its error if it had failed before."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
