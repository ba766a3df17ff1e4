"""The waits of a worker's shutdown: for its handlers, and for their outcomes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from ..job.instants import Milliseconds
from ..job.outcomes import Outcome
from .dispatcher import Dispatcher
from .job import Job
from .maintenance.loop_watch import FINAL_CALL_TIMEOUT
from .options import Rules
from .slots import Slots

SECOND_WAIT: Final = 2.0
"""Seconds for handlers to stop after the grace period: with its 25 s, less than the 30 s of most supervisors."""
HURRY: Final = 0.2
"""Seconds to wait for handlers once the worker was asked twice to stop."""


class Shutdown:
    """Ends the handlers of a worker that stops, and has their outcomes stored; `Runtime.shut_down` has the order."""

    def __init__(
        self,
        slots: Slots,
        dispatcher: Dispatcher,
        rules: Rules,
        hurried: asyncio.Event,
        ends_at: Callable[[], float | None],
    ) -> None:
        self._slots = slots
        self._dispatcher = dispatcher
        self._lock: Milliseconds = rules.lock
        self._hurried = hurried
        self._ends_at = ends_at
        self.second_wait = min(rules.cancel_grace, SECOND_WAIT)
        """Seconds for handlers to stop once they are interrupted."""

    async def wait_for_handlers(self, seconds: float) -> None:
        """Returns when no handler runs, or after so many seconds, or soon after the worker was hurried."""
        if not self._slots.held:
            return
        if self._hurried.is_set():
            seconds = min(seconds, HURRY)
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._slots.empty())]
        if not self._hurried.is_set():
            waits.append(asyncio.ensure_future(self._hurried.wait()))
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def stop_handlers(self) -> list[Job]:
        """Signals all handlers. Answers the jobs of those that did not stop; these are handed back too."""
        for job in list(self._slots.held):
            self._slots.interrupt(job, "shutdown")
        await self.wait_for_handlers(self.second_wait)
        stubborn = list(self._slots.held)
        for job in stubborn:
            self._slots.abandon(job, Outcome(job.id, job.token, "hand back"))
        return stubborn

    async def settle_the_rest(self, dispatching: asyncio.Task[None] | None) -> None:
        """Waits for unsettled outcomes until the grace period or their locks end: later they would be refused.

        Also waits for a claim in flight, whose jobs must be handed back.
        """
        if dispatching is None or dispatching.done():
            return
        rest = SECOND_WAIT
        if self._dispatcher.unsettled:
            rest = min(self._lock / 1000, (self._ends_at() or 0) - time.monotonic())
        settled = asyncio.ensure_future(self._dispatcher.settle_all())
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            for waits, seconds in (
                ([settled, dispatching, hurried], max(rest, FINAL_CALL_TIMEOUT)),
                ([settled, dispatching], FINAL_CALL_TIMEOUT),
            ):
                await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if not self._hurried.is_set():
                    break
        finally:
            settled.cancel()
            hurried.cancel()
