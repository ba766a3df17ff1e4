"""The run of a job: what its attempt shares with the parts of a worker that act for the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from ..errors import JobFinished, LockLost, StoreUnavailable
from ..job.marks import Mark, Marking
from ..job.phases import come_further
from ..store.values import HELD, Answer, JobUpdate
from .attempt_marks import AttemptMarks
from .handler_calls import HandlerCalls
from .job_log import log_next_try
from .service import until_answered
from .trying import NOT_TRIED_AGAIN

if TYPE_CHECKING:
    from .job import Job
    from .pipeline_run import FirstStart

T = TypeVar("T")


made_once: Final = Lock()
"""A `def` handler may have threads of its own: none of them makes a part of the run that another has made."""


class JobRun:
    """Updates of a running job, its marks, the calls of its handler, and which errors allow another try.

    `Job`, which handlers use, is built on it. So are pipelines, contexts of phases, and jobs in threads and processes.
    It is made when it is first needed: most jobs have none.
    """

    __slots__ = ("_calls", "_job", "_marks", "_pauses", "_tries_are_over", "first_start", "phase", "unconfirmed")

    def __init__(self, job: Job) -> None:
        self._job = job
        self._marks: AttemptMarks | None = None
        self._calls: HandlerCalls | None = None
        self._pauses: tuple[asyncio.Task[None], ...] = ()
        self._tries_are_over = False
        self.phase: str | None = None
        """The phase of its pipeline that runs now."""
        self.first_start: FirstStart | None = None
        """The start of its first phase; set until the store has confirmed it, or a later update."""
        self.unconfirmed: Marking | None = None
        """The end of one phase and the start of the next, while they are being written."""

    @property
    def marks(self) -> AttemptMarks:
        marks = self._marks
        if marks is None:
            with made_once:
                marks = self._marks = self._marks or AttemptMarks(self._job.record)
        return marks

    @property
    def has_calls(self) -> bool:
        return self._calls is not None

    @property
    def calls(self) -> HandlerCalls:
        """To note a call of the handler."""
        calls = self._calls
        if calls is None:
            with made_once:
                calls = self._calls = self._calls or HandlerCalls()
        return calls

    @property
    def has_running_steps(self) -> bool:
        return self._marks is not None and self._marks.has_running_steps

    async def end_of_steps(self) -> None:
        """Returns when no step of the handler runs any more: its result is stored then."""
        if self.has_running_steps:
            await self.marks.wait_for_steps()

    def begin_phase(self, name: str) -> None:
        """Begins a phase, or tries it again: calls that were made before are no longer its own."""
        self.phase = name
        self._calls = None
        self._tries_are_over = False
        self.marks.begin_phase(name)

    def refuse_after_giving_back(self) -> None:
        if self._calls is not None:
            self._calls.refuse_after_giving_back()

    def refuse_end(self) -> None:
        if self._calls is not None:
            self._calls.refuse_end()

    async def update(self, change: JobUpdate, *, is_repeat: bool = False) -> Answer:
        """Makes an update of the job; if the start of its first phase is not stored yet, together with that.

        Raises `LockLost` if the job is no longer this worker's. A long outage of the store is waited for. `is_repeat`
        says that the update was sent before, and its answer was lost.
        """
        job = self._job
        if job.ended:
            raise JobFinished(job.queue.name, job.id)
        start = self.first_start
        carries_start = start is not None and change is start.change
        if start is not None and not start.is_withdrawn:
            if change.children or (change.progress is not None and not _has_notices(change)):
                # If children are refused, nothing else of their update is stored; progress is announced before notices.
                await self.store_first_start()
            else:
                joined = await self._joined(start, change) or change
                carries_start, change = joined is not change, joined
        try:
            answer = await (self._repeat(change) if is_repeat else self._send(change))
        except BaseException as error:
            # A cancelled caller takes back what has not left yet.
            if start is not None and carries_start:
                start.put_back(error)
            raise
        if answer.verdict in ("lost", "missing"):
            raise LockLost(job.queue.name, job.id)
        if start is not None and (carries_start or not start.is_withdrawn):
            self.first_start = None
        return answer

    def clearing_stalls(self, change: JobUpdate) -> JobUpdate:
        """Stalls count against a job only until it comes further: one that lives for weeks may survive many crashes."""
        job, marking = self._job, change.marking
        if not job.record.stalled_count or marking is None or not come_further(job.record.marks, marking.marks):
            return change
        job.record = replace(job.record, stalled_count=0)
        return replace(change, clears_stalls=True)

    async def store_first_start(self) -> None:
        """Returns when the start of the first phase is stored."""
        start = self.first_start
        if start is None:
            return
        change = await self._joined(start, None)
        if change is None:
            self.first_start = None
        else:
            await self.update(change)

    def unstored(self) -> Marking | None:
        """Starts and ends of phases that the store has not confirmed: an outcome takes them along.

        Some may be stored all the same. They are announced again: an event may come twice, and must not be missing.
        """
        start, later = self.first_start, self.unconfirmed
        if start is None or start.is_confirmed:
            return later
        start.withdraw()
        if later is None:
            return start.marking
        return later if later.announces(start.marking) else start.marking.then(later)

    async def read(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """What a read of the store answers to a call of the handler: a short outage must not fail it."""
        return await until_answered(lambda _: call(), what, unless=lambda: self._job.cancelled)

    def write_marks(self, *marks: Mark) -> Coroutine[Any, Any, Answer]:
        """Stores results of steps. Applications call `job.step`."""
        return self.update_with_marks(JobUpdate(self._job.id, self._job.token, marking=Marking(marks)), marks)

    async def update_with_marks(self, change: JobUpdate, marks: tuple[Mark, ...]) -> Answer:
        """Makes an update that writes these marks, unless they are too many or too large for the job."""
        known = self.marks
        known.reserve(marks)
        try:
            answer = await self.update(self.clearing_stalls(change))
        except Exception:
            # Not after a cancel: the update may have left, and be stored all the same.
            known.release(marks)
            raise
        if answer.verdict == "refused":
            known.release(marks)
        else:
            known.written(marks)
        return answer

    def write_with_outcome(self, mark: Mark) -> None:
        """Writes a mark when the job is given back or completed, without an update of its own."""
        self.marks.reserve((mark,))
        job, written = self._job, Marking((mark,))
        job.marking = written if job.marking is None else job.marking.then(written)

    async def try_again(self, what: str, error: BaseException, pause: float | None) -> bool:
        """Decides whether a failed step or phase is tried again in this attempt, and waits for the pause before that.

        `what` names it for the log. `pause` is in seconds; None means that no tries are left.
        """
        job = self._job
        if pause is None or job.discarded or self._must_stop or isinstance(error, NOT_TRIED_AGAIN):
            return False
        if not self._may_retry(error):
            return False
        log_next_try(job, what, error, pause)
        if pause:
            await self._pause(pause)
        return not self._must_stop

    @property
    def _must_stop(self) -> bool:
        return self._tries_are_over or self._job.cancelled

    async def _pause(self, seconds: float) -> None:
        pause = asyncio.create_task(asyncio.sleep(seconds))
        self._pauses = (*self._pauses, pause)
        try:
            await asyncio.wait([pause])
        finally:
            pause.cancel()
            self._pauses = tuple(other for other in self._pauses if other is not pause)

    def end_tries(self) -> None:
        """Lets no step be tried again, and ends the pauses before that.

        For handlers in threads, which nothing cancels, and for steps beside one that has failed.
        """
        self._tries_are_over = True
        for pause in self._pauses:
            pause.cancel()

    def watch(self, timeout: float, what: str) -> asyncio.TimerHandle | None:
        """Gives the job up if a step or a phase still runs some time after its timeout, unless that is cancelled."""
        slot = self._job.slot
        return None if slot is None else slot.attempts.watch(self._job, timeout, what)

    def _may_retry(self, error: BaseException) -> bool:
        slot = self._job.slot
        return slot is not None and slot.attempts.outcomes.may_retry(self._job, error)

    async def _send(self, change: JobUpdate) -> Answer:
        try:
            return await self._job.queue.updates.send(change)
        except StoreUnavailable:
            if self._job.cancelled:
                raise
        return await self._repeat(change)

    async def _repeat(self, change: JobUpdate) -> Answer:
        """Makes an update whose answer was lost, until it is answered: a short outage must not fail a handler."""
        job = self._job

        async def repeat(_: bool) -> Answer:
            return HELD if await self._is_stored(change) else await job.queue.updates.send(change)

        # In a long outage its lock is lost.
        return await until_answered(repeat, "update", unless=lambda: job.cancelled)

    async def has_stored(self, start: FirstStart) -> bool:
        """True if the start of the first phase, whose answer was lost, is stored all the same."""
        return await until_answered(lambda _: self._is_stored(start.change), "get", unless=lambda: self._job.cancelled)

    async def _is_stored(self, change: JobUpdate) -> bool:
        """True if an update whose answer was lost was stored: a repeat would announce its notices a second time."""
        if change.marking is None or not change.marking.notices or not change.marking.marks:
            return False
        job = self._job
        [record] = await job.queue.store.get(job.queue.name, [job.id])
        if record is None or record.state != "active" or record.token != job.token:
            return False
        # An earlier attempt may have left the same marks.
        since = job.record.renewed_at or 0
        stored = {mark.name: mark.value for mark in record.marks if mark.at >= since}
        return all(stored.get(mark.name) == mark.value for mark in change.marking.marks)

    async def _joined(self, start: FirstStart, change: JobUpdate | None) -> JobUpdate | None:
        """The change and the start in one, if that was not sent; otherwise the change, once the start is stored."""
        if not start.withdraw():
            if start.is_withdrawn:
                # Another update that was sent takes it along.
                return change
            try:
                answer = await start.answer()
            except StoreUnavailable:
                if self._job.cancelled:
                    raise
                return await self._joined(start, change)
            if answer.verdict != "done":
                raise LockLost(self._job.queue.name, self._job.id)
            return change
        if start.is_sent and await self.has_stored(start):
            return change
        return start.change if change is None else change.after(start.change)


def _has_notices(change: JobUpdate) -> bool:
    return change.marking is not None and bool(change.marking.notices)
