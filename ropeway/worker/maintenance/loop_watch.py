"""Detection of a blocked application loop, from the maintenance thread."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, Protocol, TypeAlias

from ..context import CurrentJob
from ..job import Job
from ..service import Service, log
from .rescue import Rescue

SLOW_LOOP: Final = 0.25
"""Seconds that one uninterrupted use of the loop may take; longer ones are reported when the loop is free again."""
BLOCKED_LOOP: Final = 1.0
"""Seconds without an answer after which the loop counts as blocked; reported at once, and `Rescue` takes over."""
LOOK_EVERY: Final = 0.1
"""Seconds between two probes of the loop while jobs run; short enough to see every slow use."""
IDLE_LOOK_EVERY: Final = 0.2
"""The same while none run; shorter than SLOW_LOOP, so that a first handler is seen too."""
DEEPEST: Final = 5
"""Frames of a stack that are shown."""
_PACKAGE: Final = str(Path(__file__).parents[2])
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


class _Turn(NamedTuple):
    """One uninterrupted use of the loop: a step of a handler, or what is no handler's."""

    job: Job | None
    since: float
    where: str

    def continues(self, before: _Turn) -> bool:
        return self.job is before.job and (self.job is None or self.since == before.since)


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
            await asyncio.sleep(IDLE_LOOK_EVERY)
            self._free_at = time.monotonic()
            return
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._loop.call_soon_threadsafe(_answer, answered)
        if self._is_long_held() or not await _within(LOOK_EVERY, answered):
            await self._name_what_blocks(answered)
        self._free_at = await answered
        await asyncio.sleep(LOOK_EVERY if self._rescue.has_jobs else IDLE_LOOK_EVERY)

    async def _name_what_blocks(self, answered: asyncio.Future[float]) -> None:
        """Returns when the loop answers. Several handlers may have had their turns by then: each has its own time."""
        turn = self._look(self._free_at)
        while not await _within(LOOK_EVERY, answered):
            now = time.monotonic()
            latest = self._look(now)
            if not latest.continues(turn):
                self._report_turn(turn, latest.since)
                turn = latest
            if now - self._free_at >= BLOCKED_LOOP:
                await self._attend(answered)
                turn = turn._replace(where="")  # That was told just now.
        until, next_turn = await answered, self._current.since
        self._report_turn(turn, min(until, next_turn) if next_turn > turn.since else until)

    def _is_long_held(self) -> bool:
        """Whether a handler has had the loop since before it was asked, as one that began while nothing ran may."""
        return self._current.job is not None and time.monotonic() - self._current.since >= LOOK_EVERY

    def _look(self, otherwise: float) -> _Turn:
        """Who has the loop; what is no handler has had it since `otherwise`, as far as is known."""
        since, job = self._current.since, self._current.job
        return _Turn(job, otherwise if job is None else since, self._stack())

    def _report_turn(self, turn: _Turn, until: float) -> None:
        if until - turn.since >= SLOW_LOOP:
            self._report_slow(turn.job, until - turn.since, turn.where)

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
                    turn = self._look(self._free_at)
                    self._report_blocked(turn.job, now - turn.since, turn.where)
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
        return user_stack(frame) if frame else ""


def user_stack(frame: FrameType) -> str:
    """The innermost frames that are not Ropeway's, as a traceback has them."""
    inward = dropwhile(_is_own, (each for each, _ in traceback.walk_stack(frame)))
    frames = list(islice(takewhile(lambda each: not _is_own(each), inward), DEEPEST))
    summary = traceback.StackSummary.extract((each, each.f_lineno) for each in reversed(frames))
    return "".join(summary.format()).rstrip()


def _is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


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
