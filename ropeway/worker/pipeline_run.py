"""Running a pipeline: phases in order, from the first that did not complete.

The end of a phase and the start of the next one are one write, and the next phase waits for it. Nothing waits for the
start of the first: it is posted, and goes along with the next write of the job if that comes before it has left.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ..client.pipelines import Phase
from ..errors import AttemptTimeout, InvalidInput, PipelineChanged
from ..job.codec import Json, JsonText, decode, encode
from ..job.marks import PIPELINE, Mark, Marking
from ..job.phases import PhaseEnd
from ..store.values import Answer, JobUpdate
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


class PipelineRun:
    """One attempt of a job that runs a pipeline."""

    __slots__ = ("_calls", "_job", "_known", "_marks", "_pipeline")

    def __init__(self, pipeline: PipelinePlan, job: Job, calls: CallsPhases) -> None:
        self._pipeline = pipeline
        self._job = job
        self._calls = calls
        self._known = job._known_marks  # noqa: SLF001 - a part of the job
        self._marks = self._known.values

    async def run(self) -> Json:
        job = self._job
        results: dict[str, Json] = {}
        result: Json = None
        before: PhasePlan | None = None
        text: JsonText | None = None
        try:
            if self._marks:
                self._refuse_change()
            for phase in self._pipeline.phases:
                if self._marks and (done := self._completed_before(phase)) is not None:
                    result = results[phase.name] = done.result
                    continue
                starting = self._starting(phase, before)
                if before is None:
                    self._post(phase, starting)
                else:
                    await self._go_on(before, text, phase, starting)
                job.phase = phase.name
                result = await self._run_phase(phase, results)
                text = None if result is None else self._text(result)
                # As a later attempt will read it.
                result = results[phase.name] = None if text is None else decode(text)
                before = phase
            if before is not None:
                # Stored with the completion of the job.
                job.marking = before.ended(text)
                self._note(job.marking.marks)
            if job.posted is not None:
                await job._store_posted()  # noqa: SLF001 - a part of the job
        except Exception:
            # Before the outcome, which could overtake it.
            await job._store_posted()  # noqa: SLF001 - a part of the job
            raise
        return result

    def _note(self, marks: Sequence[Mark]) -> None:
        """Notes marks that are going to be written, or refuses them if they are too many or too large for the job."""
        try:
            self._known.note(marks)
        except InvalidInput:
            # What the phase did has happened: another attempt would repeat it.
            self._job.discarded = True
            raise

    def _text(self, result: Any) -> JsonText:
        try:
            return encode(result, "result", self._job.queue.size_limit)
        except Exception:
            # Its effects have happened: another attempt would repeat them, and fail in the same way.
            self._job.discarded = True
            raise

    def _refuse_change(self) -> None:
        stored = self._marks.get(PIPELINE)
        before = None if stored is None else msgspec.json.decode(stored, type=list[str])
        if before is not None and before != self._pipeline.names:
            self._job.discarded = True
            raise PipelineChanged(self._job.queue.name, self._job.id, before, self._pipeline.names)

    def _completed_before(self, phase: PhasePlan) -> PhaseEnd | None:
        stored = self._marks.get(phase.end)
        end = None if stored is None else _end(stored)
        return end if end is not None and end.state == "completed" else None

    def _starting(self, phase: PhasePlan, before: PhasePlan | None) -> Marking:
        """What the start of a phase writes; `before` is the phase that ended now."""
        if not self._marks:
            return self._pipeline.beginning
        if before is not None and before.index == phase.index - 1 and phase.end not in self._marks:
            # The phase that ended says when this one began.
            return phase.following
        marks: tuple[Mark, ...] = (Mark(phase.start, "null"),)
        if PIPELINE not in self._marks:
            marks += self._pipeline.beginning.marks
        return Marking(marks, (phase.end,) if phase.end in self._marks else (), phase.started)

    def _post(self, phase: PhasePlan, marking: Marking) -> None:
        job = self._job
        self._note(marking.marks)
        change = JobUpdate(job.id, job.token, progress=phase.text, marking=marking)
        job.posted = job.queue.updates.post(change, self._lost)

    def _lost(self, answer: Answer) -> None:
        self._calls.lost(self._job, answer)

    async def _go_on(self, before: PhasePlan, text: JsonText | None, phase: PhasePlan, starting: Marking) -> None:
        """Stores the end of a phase and the start of the next one."""
        job = self._job
        is_usual = text is None and starting is phase.following and before.boundary is not None
        marking = before.boundary if is_usual and before.boundary is not None else before.ended(text).then(starting)
        self._note(marking.marks)
        posted = job.posted
        if posted is not None and posted.change.marking is not None and posted.withdraw():
            marking = self._pipeline.joined(posted.change.marking, marking)
        await job._update(  # noqa: SLF001 - a part of the job
            JobUpdate(job.id, job.token, progress=phase.text, marking=marking)
        )

    async def _run_phase(self, phase: PhasePlan, results: dict[str, Json]) -> Json:
        last: Json = None
        if (stored := self._marks.get(phase.progress)) is not None:
            last = decode(stored)
        left = phase.phase.attempts
        while True:
            left -= 1
            self._known.begin_phase(phase.name)
            context = PhaseContext(self._job, phase, results, last)
            try:
                if phase.is_simple:
                    return await phase.phase.function(self._job, context)
                return await self._timed(phase.phase, context)
            except NOT_TRIED_AGAIN:
                raise
            except Exception:
                if left == 0 or self._job.cancelled:
                    raise
                last = context.last_progress
                if phase.phase.backoff is not None:
                    luck = random.random()  # noqa: S311 - spreads load, keeps no secret
                    await asyncio.sleep(phase.phase.backoff.after(phase.phase.attempts - left, luck) / 1000)

    async def _timed(self, phase: Phase, context: PhaseContext) -> Json:
        limit = None if phase.timeout is None else phase.timeout / 1000
        if limit is not None and phase.is_blocking:
            return await self._in_thread(phase, context, limit)
        return await within(limit, self._calls.call_phase(phase, self._job, context))

    async def _in_thread(self, phase: Phase, context: PhaseContext, timeout: float) -> Json:
        """Nothing can stop a thread: it is told by `ctx.cancelled`, and waited for, so that no second one runs."""
        timer = asyncio.get_running_loop().call_later(timeout, setattr, context, "is_overdue", True)
        try:
            result = await self._calls.call_phase(phase, self._job, context)
        except Exception as error:
            if context.is_overdue:
                raise AttemptTimeout(timeout) from error
            raise
        finally:
            timer.cancel()
        if context.is_overdue:
            raise AttemptTimeout(timeout)
        return result
