"""What all runs of a pipeline have in common: the names of its marks, and what its phases announce."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from ..client.pipelines import Phase, Pipeline
from ..job.codec import JsonText, encode
from ..job.marks import PIPELINE, Mark, Marking, Notice
from ..job.phases import completed, encode_completed, end_mark, overall, progress_mark, start_mark, started

_LONGEST: Final = 1 << 20


class PhasePlan:
    """A phase at its place."""

    __slots__ = (
        "_completed",
        "_ended",
        "end",
        "ended_and_next",
        "ended_with_job",
        "function",
        "index",
        "is_last",
        "is_simple",
        "name",
        "overall",
        "overall_text",
        "phase",
        "progress",
        "start",
        "started",
        "total",
    )  # fmt: skip

    def __init__(self, phase: Phase, index: int, total: int) -> None:
        self.phase = phase
        self.function = phase.function
        self.name = phase.name
        self.index = index
        self.is_last = index == total - 1
        self.total = total
        self.start, self.progress, self.end = start_mark(phase.name), progress_mark(phase.name), end_mark(phase.name)
        self.started: tuple[Notice, ...] = (started(phase.name, index, total),)
        self._completed: tuple[Notice, ...] = (completed(phase.name, index, total),)
        self._ended = Marking((Mark(self.end, encode_completed(None)),), notices=self._completed)
        self.ended_with_job = Marking(notices=self._completed)
        """Its end if it is the last: the job's completion says the rest."""
        self.overall = overall(index, 0, total)
        """The progress of the job when the phase begins."""
        self.overall_text: JsonText = str(self.overall)
        self.ended_and_next: Marking | None = None
        """Its end without a result, and the start of the next phase."""
        self.is_simple = phase.is_async and phase.timeout is None and phase.attempts == 1
        """True if nothing but its function has to be awaited, once."""

    def ended(self, result: JsonText | None) -> Marking:
        if result is None:
            return self._ended
        return Marking((Mark(self.end, encode_completed(result)),), notices=self._completed)

    def ended_before_next(self, result: JsonText | None) -> Marking:
        """Its end, and the start of the next phase, which has no mark of its own then: it began when this one ended."""
        assert self.ended_and_next is not None, "the last phase has no other behind it"
        if result is None:
            return self.ended_and_next
        return Marking((Mark(self.end, encode_completed(result)),), notices=self.ended_and_next.notices)


class PipelinePlan:
    """A pipeline as workers run it."""

    __slots__ = ("_first_and_next", "beginning", "names", "phases")

    def __init__(self, pipeline: Pipeline) -> None:
        total = len(pipeline.phases)
        self.names = list(pipeline.names)
        self.phases = tuple(PhasePlan(phase, index, total) for index, phase in enumerate(pipeline.phases))
        names = Mark(PIPELINE, encode(self.names, "pipeline", _LONGEST))
        self.beginning = Marking((names,), notices=self.phases[0].started)
        """The start of the first phase, in a job without any marks."""
        for phase, following in pairwise(self.phases):
            phase.ended_and_next = phase.ended(None).then(Marking(notices=following.started))
        first_end = self.phases[0].ended_and_next
        self._first_and_next = None if first_end is None else self.beginning.then(first_end)
        """The whole first phase without a result, and the start of the second."""

    def joined(self, start: Marking, later: Marking) -> Marking:
        """The start of the first phase, and what comes after it, in one step.

        All runs share the same object, or the same notices if there is a result: stores compare them by identity.
        """
        first_end, both = self.phases[0].ended_and_next, self._first_and_next
        if both is not None and first_end is not None and start is self.beginning:
            if later is first_end:
                return both
            if later.notices is first_end.notices:
                return Marking((*start.marks, *later.marks), notices=both.notices)
        return start.then(later)
