"""Running a pipeline: phases in order, from the first that did not complete.

The end of a phase and the start of the next one are one write, and the next phase waits for it. The end of the last
phase goes with the completion. Nothing waits for the start of the first: it goes with the next write of the job, and is
posted when the phase awaits anything else before that.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ..client.pipelines import Phase
from ..client.updates import Posted, Updates
from ..errors import AttemptTimeout, InvalidInput, LockLost, PipelineChanged
from ..job.codec import Json, JsonText, decode, encode
from ..job.marks import PIPELINE, Mark, Marking
from ..job.phases import PhaseEnd
from ..store.values import Answer, JobUpdate
from .parking import Parkable
from .phase_context import PhaseContext
from .pipeline_plan import PhasePlan, PipelinePlan
from .trying import NOT_TRIED_AGAIN, within

if TYPE_CHECKING:
    from .job import Job

_end: Final = msgspec.json.Decoder(PhaseEnd).decode


class CallsPhases(Protocol):
    """Calls a phase's function where it has to run, and stops jobs."""

    async def call_phase(self, phase: Phase, job: Job, context: PhaseContext) -> Any: ...

    def lost(self, job: Job, answer: Answer) -> None: ...


class PipelineRun(Parkable):
    """One attempt of a job that runs a pipeline. If it `may_park`, it waits for the store outside of its slot."""

    __slots__ = (
        "_before", "_calls", "_known", "_marks", "_may_park", "_pipeline", "_results", "_text", "_unsent", "_updates",
    )  # fmt: skip

    def __init__(
        self, pipeline: PipelinePlan, job: Job, calls: CallsPhases, updates: Updates, *, may_park: bool
    ) -> None:
        super().__init__(job)
        self._pipeline = pipeline
        self._calls = calls
        self._updates = updates
        self._may_park = may_park
        self._known = job._known_marks  # noqa: SLF001 - a part of the job
        self._marks = self._known.values
        self._results: dict[str, Json] = {}
        self._before: PhasePlan | None = None
        """The phase that ended now, in this attempt."""
        self._text: JsonText | None = None
        """Its result."""
        self._unsent: Posted | None = None
        """The start of the first phase, until it has to be sent."""
        self.work = self._run()

    async def _run(self) -> Json:
        job, result = self.job, None
        try:
            if self._marks:
                self._refuse_change()
            for phase in self._pipeline.phases:
                if self._marks and (done := self._completed_before(phase)) is not None:
                    result = self._results[phase.name] = done.result
                    continue
                if (change := self._start(phase)) is not None:
                    answer = await self._send(change)
                    if answer is None:
                        answer = await job._update(change)  # noqa: SLF001 - a part of the job
                    self._stored(answer)
                job.phase = phase.name
                context = self._context(phase)
                if phase.is_simple:
                    result = self._end(phase, await phase.function(job, context))
                else:
                    result = self._end(phase, await self._try(phase, context))
            if not self._finish():
                await job._store_posted()  # noqa: SLF001 - a part of the job
        except Exception:
            # Before the outcome, which could overtake it.
            await job._store_posted()  # noqa: SLF001 - a part of the job
            raise
        return result

    def _start(self, phase: PhasePlan) -> JobUpdate | None:
        """What has to be stored before a phase begins, if anything."""
        before = self._before
        if before is None:
            self._post(phase, self._starting(phase))
            return None
        if phase.index != before.index + 1 or phase.end in self._marks:
            marking = before.ended(self._text).then(self._starting(phase))
        elif self._text is None and before.boundary is not None:
            marking = before.boundary
        else:
            # The phase that ended says when this one began.
            marking = before.ended(self._text).then(phase.following)
        self._note(marking.marks)
        job, posted = self.job, self.job.posted
        if posted is not None and posted.change.marking is not None and posted.withdraw():
            marking = self._pipeline.joined(posted.change.marking, marking)
        return JobUpdate(job.id, job.token, progress=phase.text, marking=marking)

    def _starting(self, phase: PhasePlan) -> Marking:
        """The start of a phase that does not follow another one in this attempt."""
        if not self._marks:
            return self._pipeline.beginning
        marks: tuple[Mark, ...] = (Mark(phase.start, "null"),)
        if PIPELINE not in self._marks:
            marks += self._pipeline.beginning.marks
        return Marking(marks, (phase.end,) if phase.end in self._marks else (), phase.started)

    def _post(self, phase: PhasePlan, marking: Marking) -> None:
        job = self.job
        self._note(marking.marks)
        job.posted = self._unsent = Posted(
            JobUpdate(job.id, job.token, progress=phase.text, marking=marking), self._lost
        )
        if not self._may_park:
            self.suspended()

    def suspended(self) -> None:
        unsent, self._unsent = self._unsent, None
        if unsent is not None and not unsent.is_withdrawn:
            self._updates.enqueue(unsent.change, unsent)

    def _lost(self, answer: Answer) -> None:
        self._calls.lost(self.job, answer)

    def _send(self, change: JobUpdate) -> Awaitable[Answer | None]:
        """Stores an update; None if it could not, and has to be sent again."""
        posted = self.job.posted
        if self._may_park and (posted is None or posted.done()):
            return self.update(self._updates, change)
        return self.job._update(change)  # noqa: SLF001 - a part of the job

    def _stored(self, answer: Answer) -> None:
        if answer.verdict != "done":
            raise LockLost(self.job.queue.name, self.job.id)
        self.job.posted = None

    def _context(self, phase: PhasePlan) -> PhaseContext:
        self._known.begin_phase(phase.name)
        last = self._marks.get(phase.progress)
        return PhaseContext(self.job, phase, self._results, None if last is None else decode(last))

    def _end(self, phase: PhasePlan, result: Any) -> Json:
        """Notes the result of a phase, and answers it as a later attempt will read it."""
        self._before, self._text = phase, None
        if result is not None:
            self._text = self._encode(result)
            result = decode(self._text)
        self._results[phase.name] = result
        return result

    def _finish(self) -> bool:
        """Lets the end of the last phase be stored with the completion of the job. False if a start has left before."""
        job, posted = self.job, self.job.posted
        if self._before is not None:
            job.marking = self._before.ended(self._text)
            self._note(job.marking.marks)
        if posted is None:
            return True
        if job.marking is None or posted.change.marking is None or not posted.withdraw():
            return False
        job.marking = posted.change.marking.then(job.marking)
        return True

    def _note(self, marks: Sequence[Mark]) -> None:
        """Notes marks that are going to be written, or refuses them if they are too many or too large for the job."""
        try:
            self._known.note(marks)
        except InvalidInput:
            # What the phase did has happened: another attempt would repeat it.
            self.job.discarded = True
            raise

    def _encode(self, result: Any) -> JsonText:
        try:
            return encode(result, "result", self.job.queue.size_limit)
        except Exception:
            # Its effects have happened: another attempt would repeat them, and fail in the same way.
            self.job.discarded = True
            raise

    def _refuse_change(self) -> None:
        stored = self._marks.get(PIPELINE)
        before = None if stored is None else msgspec.json.decode(stored, type=list[str])
        if before is not None and before != self._pipeline.names:
            self.job.discarded = True
            raise PipelineChanged(self.job.queue.name, self.job.id, before, self._pipeline.names)

    def _completed_before(self, phase: PhasePlan) -> PhaseEnd | None:
        stored = self._marks.get(phase.end)
        end = None if stored is None else _end(stored)
        return end if end is not None and end.state == "completed" else None

    async def _try(self, phase: PhasePlan, context: PhaseContext) -> Json:
        left = phase.phase.attempts
        while True:
            left -= 1
            try:
                return await self._timed(phase.phase, context)
            except NOT_TRIED_AGAIN:
                raise
            except Exception:
                if left == 0 or self.job.cancelled:
                    raise
                if phase.phase.backoff is not None:
                    luck = random.random()  # noqa: S311 - spreads load, keeps no secret
                    await asyncio.sleep(phase.phase.backoff.after(phase.phase.attempts - left, luck) / 1000)
                self._known.begin_phase(phase.name)
                context = PhaseContext(self.job, phase, self._results, context.last_progress)

    async def _timed(self, phase: Phase, context: PhaseContext) -> Json:
        limit = None if phase.timeout is None else phase.timeout / 1000
        if limit is not None and phase.is_blocking:
            return await self._in_thread(phase, context, limit)
        return await within(limit, self._calls.call_phase(phase, self.job, context))

    async def _in_thread(self, phase: Phase, context: PhaseContext, timeout: float) -> Json:
        """Nothing can stop a thread: it is told by `ctx.cancelled`, and waited for, so that no second one runs."""
        timer = asyncio.get_running_loop().call_later(timeout, setattr, context, "is_overdue", True)
        try:
            result = await self._calls.call_phase(phase, self.job, context)
        except Exception as error:
            if context.is_overdue:
                raise AttemptTimeout(timeout) from error
            raise
        finally:
            timer.cancel()
        if context.is_overdue:
            raise AttemptTimeout(timeout)
        return result
