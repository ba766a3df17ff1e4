"""Running a pipeline: phases in order, from the first that did not complete.

The end of a phase and the start of the next one are one write, and the next phase waits for it. The end of the last
phase is the completion of the job. Nothing waits for the start of the first: the next write of the job takes it along,
or it is sent by itself when the phase awaits anything else before that.

    phase 1 begins                  phase 1 ends, phase 2 begins          phase 2 ends, and the job
    nothing is written yet -------> one update: start 1, end 1, start 2 -> one outcome: complete
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..client.pipelines import Phase
from ..client.updates import UnawaitedUpdate, enqueue_update
from ..errors import AttemptTimeout, InvalidInput, LockLost, PipelineChanged, Postponed
from ..job.codec import Json, JsonText, decode, encode
from ..job.marks import FROM_PHASE, PIPELINE, Mark, Marking
from ..job.phases import known_starts, result_text
from ..store.values import Answer, JobUpdate
from .parking import Parkable
from .phase_context import PhaseContext
from .pipeline_plan import PhasePlan, PipelinePlan
from .trying import Tries, within

if TYPE_CHECKING:
    from .job import Job


class CallsPhases(Protocol):
    """Calls a phase's function where it has to run, and stops jobs."""

    async def call_phase(self, phase: Phase, job: Job, context: PhaseContext) -> Any: ...

    def lost(self, job: Job, answer: Answer) -> None: ...


class FirstStart(UnawaitedUpdate):
    """The start of the phase that an attempt begins with. It becomes an update only if it is sent by itself."""

    def __init__(self, job: Job, calls: CallsPhases, progress: JsonText | None, marking: Marking) -> None:
        self._job = job
        self._calls = calls
        self._progress = progress
        self.marking = marking

    @cached_property
    def change(self) -> JobUpdate:
        job = self._job
        return JobUpdate(job.id, job.token, progress=self._progress, marking=self.marking)

    def _refused(self, answer: Answer) -> None:
        self._calls.lost(self._job, answer)


class PipelineRun(Parkable):
    """One attempt of a job that runs a pipeline. If it `may_park`, it waits for the store outside of its slot."""

    _before: PhasePlan | None = None
    """The phase that ended last, in this attempt."""
    _text: JsonText | None = None
    """Its result."""
    _unsent: FirstStart | None = None
    """The start of the first phase, until it is sent or withdrawn."""
    _from_phase: Marking | None = None
    """Marks that the first start writes in addition, for a job that was retried from a phase."""

    def __init__(self, pipeline: PipelinePlan, job: Job, calls: CallsPhases, *, may_park: bool) -> None:
        super().__init__(job)
        self._pipeline = pipeline
        self._calls = calls
        self._may_park = may_park
        self._run = job.run
        self._known = self._run.marks
        self._marks = self._known.values
        self._results: dict[str, JsonText] = {}
        self.work = self._run_phases()

    async def _run_phases(self) -> Json:
        job, result = self.job, None
        try:
            if self._marks:
                self._compare_names()
            for phase in self._pipeline.phases:
                if phase.end in self._marks and (text := result_text(self._marks[phase.end])) is not None:
                    self._results[phase.name] = text
                    if phase.is_last:
                        result = decode(text)
                    continue
                if self._before is None:
                    self._begin(phase)
                else:
                    await self._begin_next(self._before, phase)
                self._run.begin_phase(phase.name)
                context = PhaseContext(job, phase, self._results, self._marks)
                result = await (phase.function(job, context) if phase.is_simple else self._try(phase, context))
                if self._run.has_calls:
                    await self._end_calls()
                self._end(phase, result)
            if not self._end_with_job():
                await self._run.store_first_start()
        except (Exception, Postponed, BaseExceptionGroup):
            # Before the outcome, which could overtake it.
            await self._run.store_first_start()
            raise
        return result

    async def _begin_next(self, before: PhasePlan, phase: PhasePlan) -> None:
        """Stores the end of a phase and the start of the next one. If that is possible, the job is parked meanwhile."""
        if phase.index != before.index + 1 or phase.end in self._marks:
            marking = before.ended(self._text).then(self._starting(phase))
        else:
            marking = before.ended_before_next(self._text)
        self._add(marking.marks)
        job, run = self.job, self._run
        # From here on it is this phase that a timeout strikes.
        run.phase, run.unconfirmed = phase.name, marking
        # Without a slot it was given up, and its updates are refused.
        can_park = self._may_park and job.slot is not None
        if (start := run.first_start) is not None:
            if start.withdraw():
                self._unsent = None
                run.unconfirmed = self._pipeline.joined(start.marking, marking)
                if not (start.is_sent and await run.has_stored(start)):
                    marking = run.unconfirmed
            can_park = can_park and start.done()
        change = run.clearing_stalls(JobUpdate(job.id, job.token, progress=phase.overall_text, marking=marking))
        answer = await self.update(change) if can_park else None
        if answer is None:
            answer = await run.update(change, is_repeat=can_park)
        if answer.verdict != "done":
            raise LockLost(job.queue.name, job.id)
        run.first_start = run.unconfirmed = None
        if job.interruption is not None:
            # The phase before ignored it: this one ends where it begins.
            raise asyncio.CancelledError

    def _starting(self, phase: PhasePlan) -> Marking:
        """The start of a phase that does not follow another one in this attempt, of a job that has marks."""
        marks: tuple[Mark, ...] = () if self._goes_on(phase) else (Mark(phase.start, "null"),)
        if PIPELINE not in self._marks:
            marks += self._pipeline.beginning.marks
        forgets = (phase.end,) if phase.end in self._marks else ()
        if self._from_phase is not None:
            marks, forgets = (*marks, *self._from_phase.marks), (*forgets, *self._from_phase.forgets)
            self._from_phase = None
        return Marking(marks, forgets, phase.started)

    def _goes_on(self, phase: PhasePlan) -> bool:
        """True if an earlier attempt of this run began the phase, and gave it back or was lost."""
        if self._from_phase is not None or phase.end in self._marks or self.job.record.progress is None:
            # A retry by hand clears the progress.
            return False
        before = self._pipeline.phases[phase.index - 1].end if phase.index else PIPELINE
        return before in self._marks or phase.start in self._marks

    def _begin(self, phase: PhasePlan) -> None:
        """Begins the first phase. Its start is sent with another write of the job, or when the phase is suspended."""
        progress: JsonText | None = phase.overall_text
        marking = self._pipeline.beginning
        if self._marks:
            if self._goes_on(phase):
                progress = None
            marking = self._starting(phase)
            self._add(marking.marks)
        self._run.first_start = self._unsent = FirstStart(self.job, self._calls, progress, marking)
        if not self._may_park:
            self.suspended()

    def suspended(self) -> None:
        start, self._unsent = self._unsent, None
        if start is not None and not start.is_withdrawn:
            slot = self.job.slot
            enqueue = slot.enqueue_update if self._may_park and slot is not None else enqueue_update
            enqueue(self.job.queue, start.change, start)

    def _end(self, phase: PhasePlan, result: Any) -> None:
        """Keeps the result of a phase for the next write."""
        if self.job.interruption == "timeout":
            # It may have stopped half-way, as it was told.
            raise asyncio.CancelledError
        text: JsonText | None = None
        # That of the last is encoded with the job's completion; here too if a refusal has to follow the first start.
        if result is not None and not (phase.is_last and self._run.first_start is None):
            text = self._encode(result)
        self._before, self._text = phase, text
        self._results[phase.name] = "null" if text is None else text

    async def _end_calls(self) -> None:
        await self._run.end_of_steps()
        try:
            self._run.refuse_end()
        except InvalidInput:
            # What the phase did has happened: another attempt would repeat it.
            self.job.discarded = True
            raise

    def _end_with_job(self) -> bool:
        """Lets the job's completion announce the last end; False if the first start has to be stored before that."""
        job, start = self.job, self._run.first_start
        if self._before is not None:
            job.marking = self._before.ended_with_job
        elif self._from_phase is not None:
            job.marking = self._from_phase
        if start is None:
            return True
        if job.marking is None or start.is_sent or not start.withdraw():
            return False
        job.marking = start.marking.then(job.marking)
        return True

    def _add(self, marks: Sequence[Mark]) -> None:
        """Adds marks that are going to be written, or refuses them if they are too many or too large for the job."""
        try:
            self._known.add(marks)
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

    def _compare_names(self) -> None:
        """Refuses a job that began with other phases, unless it was retried from one of them."""
        before = _names_of(self._marks.get(PIPELINE))
        has_changed = before is not None and before != self._pipeline.names
        if FROM_PHASE in self._marks:
            renamed = (*self._pipeline.beginning.marks, *known_starts(self.job.record)) if has_changed else ()
            self._from_phase = Marking(renamed, (FROM_PHASE,))
        elif before is not None and has_changed:
            self.job.discarded = True
            raise PipelineChanged(self.job.queue.name, self.job.id, before, self._pipeline.names)

    async def _try(self, phase: PhasePlan, context: PhaseContext) -> Json:
        tries, failed = Tries(phase.phase.attempts, phase.phase.backoff), 0
        while True:
            try:
                return await self._timed(phase.phase, context)
            except Exception as error:
                context.is_over = True
                self._run.end_tries()
                await self._run.end_of_steps()
                self._run.begin_phase(phase.name)
                failed += 1
                if not await self._run.try_again(f"phase {phase.name!r}", error, tries.pause_after(failed)):
                    raise
                context = PhaseContext(self.job, phase, self._results, self._marks)

    async def _timed(self, phase: Phase, context: PhaseContext) -> Json:
        limit = None if phase.timeout is None else phase.timeout / 1000
        work = self._calls.call_phase(phase, self.job, context)
        if not phase.is_blocking:
            return await within(limit, work, self._run.watch, f"phase {phase.name!r}")
        if limit is not None:
            return await self._in_thread(phase, work, context, limit)
        result = await work
        return await result if inspect.isawaitable(result) else result

    async def _in_thread(self, phase: Phase, work: Awaitable[Any], context: PhaseContext, timeout: float) -> Json:
        """Nothing can stop a thread: it can see `ctx.cancelled`, and is waited for, so that no second one runs.

        Its steps are not tried again after the timeout.
        If its function returns a coroutine, as `lambda job, ctx: download(job, ctx, db)`, that is cancelled.
        """
        what, loop = f"phase {phase.name!r}", asyncio.get_running_loop()
        ends_at = loop.time() + timeout
        watching = self._run.watch(timeout, what)
        timer = loop.call_at(ends_at, self._overdue, context)
        try:
            result = await work
            if inspect.isawaitable(result):
                result = await within(max(0.0, ends_at - loop.time()), result, self._run.watch, what)
        except Exception as error:
            if context.is_overdue:
                raise AttemptTimeout(timeout, what) from error
            raise
        finally:
            timer.cancel()
            if watching is not None:
                watching.cancel()
        if context.is_overdue:
            raise AttemptTimeout(timeout, what)
        return result

    def _overdue(self, context: PhaseContext) -> None:
        context.is_overdue = True
        self._run.end_tries()


def refuse_plain_handler(job: Job) -> None:
    """Refuses a job that began with a pipeline and has a handler without phases now, unless a phase was named."""
    marks = {mark.name: mark.value for mark in job.record.marks}
    before = _names_of(marks.get(PIPELINE))
    if before is not None and FROM_PHASE not in marks:
        job.discarded = True
        raise PipelineChanged(job.queue.name, job.id, before, ())


def _names_of(mark: JsonText | None) -> list[str] | None:
    return None if mark is None else msgspec.json.decode(mark, type=list[str])
