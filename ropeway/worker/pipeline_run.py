"""Running a pipeline: phases in order, from the first that did not complete."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from ..client.pipelines import Phase, Pipeline
from ..errors import AttemptTimeout, InvalidInput, InvalidOption, PipelineChanged
from ..job.codec import Json, JsonText, decode, encode
from ..job.marks import PIPELINE, Mark, Marking
from ..job.phases import (
    PhaseEnd,
    completed,
    encode_completed,
    end_mark,
    overall,
    progress_mark,
    result_of_phase,
    start_mark,
    started,
)
from ..showing import shown
from ..store.values import JobUpdate
from .process_protocol import PhaseStart
from .trying import NOT_TRIED_AGAIN, within

if TYPE_CHECKING:
    from .job import Job, SyncJob

_end: Final = msgspec.json.Decoder(PhaseEnd).decode


class CallsPhases(Protocol):
    """Calls a phase's function where it has to run."""

    async def call_phase(self, phase: Phase, job: Job, context: PhaseContext) -> Any: ...


class Place(NamedTuple):
    """The position of a phase in its pipeline."""

    name: str
    number: int
    """From 0."""
    total: int


class PhaseContext:
    """What a phase's function receives beside the job."""

    def __init__(self, job: Job, place: Place, results: dict[str, Json], last_progress: Json) -> None:
        self._job = job
        self._place = place
        self._results = results
        self.last_progress = last_progress
        """What this phase last reported, also in an attempt that was interrupted; None if it never did."""
        self.overall = overall(place.number, 0, place.total)
        """The progress of the whole job, in percent."""
        self.is_overdue = False
        """True if the timeout of the phase has passed."""

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def description(self) -> PhaseStart:
        """For a process that runs the phase."""
        place = self._place
        return PhaseStart(place.name, place.number, place.total, self._results, self.last_progress)

    async def progress(self, percent: float) -> None:
        """Stores the progress of this phase, from 0 to 100, and with it that of the job; then announces it."""
        given: object = percent
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 100:
            raise InvalidOption("progress", f"of a phase cannot be {shown(percent)}: use a number from 0 to 100")
        whole = overall(self._place.number, percent, self._place.total)
        mark = Mark(progress_mark(self.name), encode(percent, "progress", 100))
        job = self._job
        await job._update(  # noqa: SLF001 - a part of the job
            JobUpdate(job.id, job.token, progress=str(whole), marking=Marking((mark,)))
        )
        self.last_progress, self.overall = percent, whole
        if job.progressed is not None:
            job.progressed(job, whole)

    def phase_result(self, name: str) -> Json:
        """The result of a phase before this one."""
        return result_of_phase(self._results, name, self.name)

    def phase_results(self) -> dict[str, Json]:
        """The results of all phases before this one, by name."""
        return dict(self._results)


class SyncPhaseContext:
    """The context of a `def` phase: `progress` blocks until it is stored."""

    def __init__(self, context: PhaseContext, job: SyncJob) -> None:
        self._context = context
        self._twin = job

    @property
    def name(self) -> str:
        return self._context.name

    @property
    def overall(self) -> int:
        return self._context.overall

    @property
    def last_progress(self) -> Json:
        return self._context.last_progress

    @property
    def cancelled(self) -> bool:
        """True if the function should stop: the job's handler should, or the timeout of the phase has passed."""
        return self._context.is_overdue or self._twin.cancelled

    def progress(self, percent: float) -> None:
        return self._twin._wait(lambda: self._context.progress(percent))  # noqa: SLF001 - a part of the job

    def phase_result(self, name: str) -> Json:
        return self._context.phase_result(name)

    def phase_results(self) -> dict[str, Json]:
        return self._context.phase_results()


class PipelineRun:
    """One attempt of a job that runs a pipeline."""

    def __init__(self, pipeline: Pipeline, job: Job, calls: CallsPhases) -> None:
        self._pipeline = pipeline
        self._job = job
        self._calls = calls
        self._known = job._known_marks  # noqa: SLF001 - a part of the job
        self._marks = self._known.values
        self._count = len(pipeline.phases)

    async def run(self) -> Json:
        self._refuse_change()
        results: dict[str, Json] = {}
        result: Json = None
        ending: Marking | None = None
        for index, phase in enumerate(self._pipeline.phases):
            done = self._completed_before(phase.name)
            if done is not None:
                result = results[phase.name] = done.result
                continue
            await self._start(phase, index, ending)
            self._job.phase = phase.name
            text = self._text(await self._run_phase(phase, index, dict(results)))
            # As a later attempt will read it.
            result = results[phase.name] = None if text is None else decode(text)
            mark = Mark(end_mark(phase.name), encode_completed(text))
            ending = Marking((mark,), notices=(completed(phase.name, index, self._count),))
        if ending is not None:
            self._refuse_too_many(ending.marks)
        # The last one is stored with the completion of the job.
        self._job.marking = ending
        return result

    def _refuse_too_many(self, marks: Sequence[Mark]) -> None:
        try:
            self._known.checked(*marks)
        except InvalidInput:
            # What the phase did has happened: another attempt would repeat it.
            self._job.discarded = True
            raise

    def _text(self, result: Any) -> JsonText | None:
        try:
            return None if result is None else encode(result, "result", self._job.queue.size_limit)
        except Exception:
            # Its effects have happened: another attempt would repeat them, and fail in the same way.
            self._job.discarded = True
            raise

    def _refuse_change(self) -> None:
        stored = self._marks.get(PIPELINE)
        before = None if stored is None else msgspec.json.decode(stored, type=list[str])
        if before is not None and before != list(self._pipeline.names):
            self._job.discarded = True
            raise PipelineChanged(self._job.queue.name, self._job.id, before, self._pipeline.names)

    def _completed_before(self, name: str) -> PhaseEnd | None:
        stored = self._marks.get(end_mark(name))
        end = None if stored is None else _end(stored)
        return end if end is not None and end.state == "completed" else None

    async def _start(self, phase: Phase, index: int, ending: Marking | None) -> None:
        """Announces the end of the phase before and the start of this one, in one step."""
        before = ending or Marking()
        marks = [*before.marks, Mark(start_mark(phase.name), "null")]
        if PIPELINE not in self._marks:
            marks.append(Mark(PIPELINE, encode(list(self._pipeline.names), "pipeline", 1 << 20)))
        notices = (*before.notices, started(phase.name, index, self._count))
        failed = end_mark(phase.name)
        marking = Marking(tuple(marks), (failed,) if failed in self._marks else (), notices)
        job = self._job
        progress = str(overall(index, 0, self._count))
        self._refuse_too_many(marks)
        await job._update(  # noqa: SLF001 - a part of the job
            JobUpdate(job.id, job.token, progress=progress, marking=marking)
        )
        self._known.written(*marks)

    async def _run_phase(self, phase: Phase, index: int, results: dict[str, Json]) -> Json:
        left = phase.attempts
        stored = self._marks.get(progress_mark(phase.name))
        last = None if stored is None else decode(stored)
        while True:
            left -= 1
            self._known.begin_phase(phase.name)
            context = PhaseContext(self._job, Place(phase.name, index, self._count), results, last)
            try:
                return await self._timed(phase, context)
            except NOT_TRIED_AGAIN:
                raise
            except Exception:
                if left == 0 or self._job.cancelled:
                    raise
                last = context.last_progress
                if phase.backoff is not None:
                    luck = random.random()  # noqa: S311 - spreads load, keeps no secret
                    await asyncio.sleep(phase.backoff.after(phase.attempts - left, luck) / 1000)

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
