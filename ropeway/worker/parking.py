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
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any

from ..errors import StoreUnavailable
from ..store import forks
from ..store.values import Answer, JobUpdate
from .context import CurrentJob
from .service import end_forked_child

if TYPE_CHECKING:
    from .job import Job


class Parkable:
    """An attempt that may be parked: it then waits for the answer to an update, outside of its slot.

    It has a context of its own, for the reason that `isolated` gives.
    """

    work: Coroutine[Any, Any, Any]
    """The coroutine of the attempt, which runs in its context."""
    began = 0.0
    """When it began, by the clock of its loop; set when it is parked."""
    _is_parked = False
    _resume: Callable[[Parkable], None]
    _step: Callable[[Any], Any] | None = None
    """How to go on, and with what; None to send that."""
    _value: Any = None

    def __init__(self, job: Job) -> None:
        self.job = job
        self.context = copy_context()

    @coroutine
    def update(self, change: JobUpdate) -> Generator[Any, Any, Answer | None]:
        """Parks the attempt until an update is answered; None if the store cannot be reached."""
        slot = self.job.slot
        assert slot is not None, "only slots run attempts that may be parked"
        self._is_parked = True
        self._resume = slot.resume
        slot.enqueue_update(self.job.queue, change, self)
        try:
            answer: Answer = yield self
        except StoreUnavailable:
            return None
        return answer

    def suspended(self) -> None:
        """Called when it awaits anything else."""

    def advance(self, current: CurrentJob) -> Any:
        """Begins, or goes on, and returns what it awaits then: itself if it parks. Raises StopIteration at its end."""
        step, value = self._step or self.work.send, self._value
        self._step = self._value = None
        current.since = monotonic()
        current.job = self.job
        try:
            return self.context.run(step, value)
        finally:
            current.job = None
            if forks.count != current.forks:
                end_forked_child()

    @coroutine
    def awaiting(self, awaited: Any, current: CurrentJob) -> Generator[Any, Any, Any]:
        """Goes on in the running task, where it awaits something else than the store; returns itself if it parks."""
        try:
            while awaited is not self:
                self.suspended()
                try:
                    self._value = yield awaited
                except GeneratorExit:
                    self.context.run(self.work.close)
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever it is, it is the handler's to see
                    self._step, self._value = self.work.throw, error
                awaited = self.advance(current)
        except StopIteration as done:
            return done.value
        return self

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
        """Ends the wait, as the cancellation of a task would; also if the answer came, and it has not gone on yet."""
        if self._is_parked:
            self.set_exception(asyncio.CancelledError())
        else:
            self._step, self._value = self.work.throw, asyncio.CancelledError()

    def _go_on(self) -> None:
        self._is_parked = False
        self._resume(self)
