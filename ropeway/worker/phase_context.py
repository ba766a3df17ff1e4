"""The contexts that functions of phases receive beside the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidOption, JobFinished
from ..job.codec import Json, JsonText, decode, encode
from ..job.marks import Mark, Marking
from ..job.phases import overall, result_of_phase, results_of_phases
from ..showing import shown
from ..store.values import JobUpdate
from .pipeline_plan import PhasePlan
from .process_protocol import PhaseStart

if TYPE_CHECKING:
    from .job import Job
    from .thread_job import CallsToLoop


class PhaseContext:
    """What a phase's function receives beside the job."""

    is_overdue = False
    """True if the timeout of the phase has passed."""
    is_over = False
    """True if the phase failed, and is tried again with another context."""

    def __init__(self, job: Job, place: PhasePlan, results: dict[str, JsonText], marks: dict[str, JsonText]) -> None:
        self._job = job
        self._place = place
        self._results = results
        self._marks = marks
        self.overall = place.overall
        """The progress of the whole job, in percent."""

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def last_progress(self) -> Json:
        """What this phase last reported, also in an attempt that was interrupted; None if it never did."""
        stored = self._marks.get(self._place.progress)
        return None if stored is None else decode(stored)

    @property
    def description(self) -> PhaseStart:
        """For a process that runs the phase."""
        place = self._place
        return PhaseStart(place.name, place.index, place.total, self._results, self.last_progress)

    async def progress(self, percent: float) -> None:
        """Stores the progress of this phase, from 0 to 100, and with it that of the job; then announces it."""
        given: object = percent
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 100:
            raise InvalidOption("progress", f"of a phase cannot be {shown(percent)}: use a number from 0 to 100")
        place = self._place
        if self.is_over or place.name in self._results:
            raise JobFinished(self._job.queue.name, self._job.id, place.name)
        whole = overall(place.index, percent, place.total)
        mark = Mark(place.progress, encode(percent, "progress", 100))
        job = self._job
        await job.run.update(JobUpdate(job.id, job.token, progress=str(whole), marking=Marking((mark,))))
        self._marks[mark.name] = mark.value
        self.overall = whole
        if job.progressed is not None:
            job.progressed(job, whole)

    def phase_result(self, name: str) -> Json:
        """The result of a phase before this one."""
        return result_of_phase(self._results, name, self.name)

    def phase_results(self) -> dict[str, Json]:
        """The results of all phases before this one, by name."""
        return results_of_phases(self._results)


class SyncPhaseContext:
    """The context of a `def` phase: `progress` blocks until it is stored."""

    def __init__(self, context: PhaseContext, job: Job, calls: CallsToLoop) -> None:
        self._context = context
        self._job = job
        self._calls = calls

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
        return self._context.is_overdue or self._job.cancelled

    def progress(self, percent: float) -> None:
        return self._calls.wait(lambda: self._context.progress(percent))

    def phase_result(self, name: str) -> Json:
        return self._context.phase_result(name)

    def phase_results(self) -> dict[str, Json]:
        return self._context.phase_results()
