"""The result of draining a queue."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ..errors import JobFailed
from ..job.codec import Json
from ..job.states import State
from ..worker.failures import HandlerFailed
from .webhooks import WebhookRequest

Ended: TypeAlias = Literal["completed", "failed", "retrying", "postponed", "cancelled", "lost"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a handler, and how it ended."""

    queue: str
    id: str
    name: str
    data: Json
    attempt: int
    """1 for the first; postponements and stalls do not count."""
    ended: Ended
    result: Json = None
    reason: str | None = None
    error: BaseException | None = None
    """The exception of the handler, with its traceback; None for a job that failed because its workers were lost."""
    delay: float = 0.0
    """Seconds until the next run, if it is retried or postponed."""

    def __str__(self) -> str:
        return f"{self.name} {self.id}: {self.ended}" + (f": {self.reason}" if self.reason else "")


class Drained(msgspec.Struct, frozen=True):
    """The result of `drain`: the attempts, how each ended, and the jobs that are left."""

    attempts: list[Attempt]
    """Every run of a handler, in the order in which they ended."""
    stalled: list[str]
    """Ids of jobs whose lock expired."""
    left: dict[State, int]
    """Unfinished jobs by state: without a handler, in paused queues, or not yet due."""
    webhooks: list[WebhookRequest] = []
    """Messages about ended jobs: those that were given to the `receiver`, or wait to be sent."""

    @property
    def completed(self) -> list[Attempt]:
        return self._ended("completed")

    @property
    def failed(self) -> list[Attempt]:
        """Failed attempts that are not retried."""
        return self._ended("failed")

    @property
    def retried(self) -> list[Attempt]:
        """Failed attempts after which there was, or will be, another."""
        return self._ended("retrying")

    def raise_failures(self) -> None:
        """Raises the exception of the first failed job's handler: the same object."""
        if not self.failed:
            return
        first, *others = self.failed
        error = first.error
        if not isinstance(error, Exception):
            # SystemExit or a cancellation, raised again here, would end the test run or its task.
            error = JobFailed(first.queue, first.id, first.reason or "")
            error.__cause__ = first.error
        error.add_note(f"The job {first.name!r} {first.id} in {first.queue!r} failed at attempt {first.attempt}.")
        if isinstance(error, HandlerFailed):
            error.add_note(f"In its process:\n{error.failure.trace}")
        if others:
            error.add_note("So did others:" + "".join(f"\n  {other}" for other in others[:10]))
        raise error

    def _ended(self, ended: Ended) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.ended == ended]
