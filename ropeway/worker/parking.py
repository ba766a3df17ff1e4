"""Attempts that leave their slot while the store answers.

A pipeline waits for the store between two phases, and no function of the application is on its stack then. It could go
on in any task, so it waits in none:

    slot A:  job 1 . phase 1 -> parks    job 2 . phase 1 -> parks    ...
                        |                           |
                        +------- one update of the store for all of them
                                                    |
    slot A:  job 1 . phase 2 -> parks    job 2 . phase 2 -> ...

One slot runs the phases of many jobs after each other, as it does with plain jobs, and no task is woken for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from types import coroutine
from typing import TYPE_CHECKING, Any

from ..errors import StoreUnavailable
from ..store.values import Answer, JobUpdate

if TYPE_CHECKING:
    from ..client.updates import Updates
    from .job import Job


class Parkable:
    """An attempt that may be parked: it then waits for the answer to an update, outside of its slot."""

    __slots__ = ("_is_parked", "_resume", "_step", "_value", "began", "context", "job", "work")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.context = copy_context()
        self.work: Coroutine[Any, Any, Any]
        """The coroutine of the attempt, which runs in this context."""
        self.began = 0.0
        """When it began, by the clock of its loop; set when it is parked."""
        self._is_parked = False
        self._resume: Callable[[Parkable], None]
        self._step: Callable[[Any], Any] | None = None
        self._value: Any = None

    @coroutine
    def update(self, updates: Updates, change: JobUpdate) -> Generator[Any, Any, Answer | None]:
        """Parks the attempt until an update is answered; None if the store cannot be reached."""
        slot = self.job.slot
        assert slot is not None, "only slots run attempts that may be parked"
        self._is_parked = True
        self._resume = slot.resume
        updates.enqueue(change, self)
        try:
            answer: Answer = yield self
        except StoreUnavailable:
            return None
        return answer

    def suspended(self) -> None:
        """Called when it awaits anything else."""

    def take_step(self) -> tuple[Callable[[Any], Any], Any]:
        """What to call to begin, or to go on, and its argument."""
        step, value = self._step or self.work.send, self._value
        self._step = self._value = None
        return step, value

    def done(self) -> bool:
        """True if it awaits no answer."""
        return not self._is_parked

    def set_result(self, answer: Answer) -> None:
        self._value = answer
        self._go_on()

    def set_exception(self, error: BaseException) -> None:
        self._step, self._value = self.work.throw, error
        self._go_on()

    def cancel(self) -> None:
        """Ends the wait, as the cancellation of a task would."""
        if self._is_parked:
            self.set_exception(asyncio.CancelledError())

    def _go_on(self) -> None:
        self._is_parked = False
        self._resume(self)
