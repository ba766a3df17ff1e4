"""Reports of a worker's work: log lines and listener events.

Methods named `on_...` may be called from any thread; the others belong to the worker's loop.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Sequence
from typing import Any

from ..job.codec import Json, decode
from ..job.events import Event
from ..job.failure import UNKNOWN_REASON, Failure
from ..job.moves import MOVES
from ..job.outcomes import Outcome
from ..job.states import State
from ..store.values import Answer, Ticked
from .job import REVOKED, Job
from .job_log import JobLog
from .listeners import OF_QUEUES, Listeners
from .service import log
from .timing import Timing


class Reports:
    """Turns what happens to jobs into log lines and listener events."""

    def __init__(self, listeners: Listeners, loop: asyncio.AbstractEventLoop) -> None:
        self._listeners = listeners
        self._loop = loop
        self._job_log = JobLog(loop)

    @property
    def hears_queues(self) -> bool:
        """True if there is a listener to events of the queues."""
        return self._listeners.hears(*OF_QUEUES)

    def happened(self, event: Event) -> None:
        about = {"queue": event.queue} if event.job_id is None else {"queue": event.queue, "job_id": event.job_id}
        self._listeners.emit(event.name, None, **event.data, **about)

    def claimed(self, jobs: list[Job]) -> None:
        tells_each = log.isEnabledFor(logging.INFO)
        if tells_each:
            for job in jobs:
                job.timing = Timing()
                job.progressed = self._progressed
            self._job_log.begin(jobs)
        elif self._listeners.hears("progress"):
            for job in jobs:
                job.progressed = self._progressed
        if self._listeners.hears("active"):
            for job in jobs:
                self._listeners.emit("active", job, attempt=job.attempt)

    def dropped(self, job: Job) -> None:
        if job.interruption not in REVOKED:
            self._listeners.emit("lock-lost", job)
            return
        self._job_log.revoked(job, job.interruption)
        # A removal is in the events of the queue.
        if job.interruption == "cancelled":
            self._listeners.emit("cancelled", job)

    def settled_all(self, ended: list[tuple[Job, Outcome]], answers: list[Answer]) -> None:
        """Reports the answers to the outcomes of one trip."""
        wants_completed = self._listeners.hears("completed")
        for (job, outcome), answer in zip(ended, answers, strict=True):
            is_plain = outcome.move == "complete" and answer.verdict == "done" and answer.state != "cancelled"
            if not is_plain or wants_completed or job.timing is not None:
                self.settled(job, outcome, answer)

    def settled(self, job: Job, outcome: Outcome, answer: Answer) -> None:
        # An error references its frames, and these the job: kept on the job, it would be a reference cycle.
        error, job.error = job.error, None
        if answer.state == "cancelled":
            self._job_log.revoked(job, "cancelled")
            self._listeners.emit("cancelled", job)
        elif answer.verdict != "done":
            why = "it was removed" if answer.verdict == "missing" else "its lock is lost"
            log.warning("the outcome of %r was refused: %s", job, why)
            self._listeners.emit("lock-lost", job, move=outcome.move)
        elif outcome.move == "complete":
            if job.timing is not None:
                self._job_log.completed(job)
            if self._listeners.hears("completed"):
                result = None if outcome.result is None else decode(outcome.result)
                self._listeners.emit("completed", job, result=result)
        elif outcome.move == "fail":
            self._failed(job, outcome, error)
        else:
            self._back(job, outcome, error)

    def close(self) -> None:
        self._job_log.sum_up()

    def leaked(self, job: Job, leaked: int) -> None:
        log.error("the handler of %r does not stop: its slot is leaked, %d in total", job, leaked)
        self._listeners.emit("leaked", job, leaked=leaked)

    def on_ticked(self, queue: str, ticked: Ticked) -> None:
        if ticked.reset:
            log.error("the store was emptied while this worker ran: the jobs that it held are gone")
            self._emit_soon("store-reset", queue=queue)
        if ticked.stalled or ticked.given_up:
            self._stalled(queue, ticked)

    def on_unhandled(self, queue: str, name: str, handled: Sequence[str]) -> None:
        near = difflib.get_close_matches(name, handled, n=1)
        hint = f", but one for {near[0]!r}" if near else ""
        log.warning("jobs named %r wait in %r, and this worker has no handler for them%s", name, queue, hint)
        self._emit_soon("unhandled", queue=queue, job_name=name)

    def on_slow_loop(self, job: Job | None, seconds: float, where: str) -> None:
        culprit = f"{job!r} blocked the loop" if job else "code outside of handlers blocked the loop"
        stack = f"\n{where}" if where else ""
        log.warning("%s for %.2f s: make it a def handler, or use a thread%s", culprit, seconds, stack)
        self._emit_soon("slow-loop", job, seconds=seconds)

    def on_blocked_loop(self, job: Job | None, seconds: float, where: str) -> None:
        culprit = f"{job!r} has blocked" if job else "code outside of handlers has blocked"
        log.warning("%s the loop for %.0f s, and still does: other jobs on it wait\n%s", culprit, seconds, where)

    def _stalled(self, queue: str, ticked: Ticked) -> None:
        for job_id in ticked.stalled:
            log.warning("job %s in %r stalled and waits again", job_id, queue)
        for job_id in ticked.given_up:
            log.error("job %s in %r stalled and was given up: its reason says why", job_id, queue)
        self._emit_soon("stalled", queue=queue, ids=[*ticked.stalled, *ticked.given_up])

    def _progressed(self, job: Job, value: Json) -> None:
        self._job_log.progressed(job, value)
        self._listeners.emit("progress", job, progress=value)

    def _failed(self, job: Job, outcome: Outcome, error: BaseException | None) -> None:
        failure = outcome.failure or Failure(UNKNOWN_REASON)
        reason = failure.reason
        self._job_log.failed(job, failure)
        self._listeners.emit("failed", job, reason=reason, error=error)
        if outcome.exhausted:
            self._listeners.emit("retries-exhausted", job, reason=reason, error=error)

    def _back(self, job: Job, outcome: Outcome, error: BaseException | None) -> None:
        """Reports a job that will run again: retried, postponed or handed back."""
        data: dict[str, Any] = {"delay": outcome.delay}
        if outcome.move == "hand back":
            self._job_log.handed_back(job)
        if outcome.failure is not None:
            data |= {"reason": outcome.failure.reason, "error": error}
            self._job_log.retried(job, outcome.failure, outcome.delay)
        for name in MOVES[outcome.move].events(_state_after(outcome)):
            self._listeners.emit(name, job, **data)

    def _emit_soon(self, name: str, job: Job | None = None, **data: Any) -> None:
        self._loop.call_soon_threadsafe(lambda: self._listeners.emit(name, job, **data))


def _state_after(outcome: Outcome) -> State:
    if outcome.awaits_children:
        return "waiting-children"
    return "delayed" if outcome.delay else "waiting"
