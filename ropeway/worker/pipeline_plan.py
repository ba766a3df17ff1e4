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
        "_completed", "_ended", "boundary", "end", "following", "function", "index", "is_simple", "name", "overall",
        "phase", "progress", "start", "started", "text", "total",
    )  # fmt: skip

    def __init__(self, phase: Phase, index: int, total: int) -> None:
        self.phase = phase
        self.function = phase.function
        self.name = phase.name
        self.index = index
        self.total = total
        self.start, self.progress, self.end = start_mark(phase.name), progress_mark(phase.name), end_mark(phase.name)
        self.started: tuple[Notice, ...] = (started(phase.name, index, total),)
        self._completed: tuple[Notice, ...] = (completed(phase.name, index, total),)
        self._ended = Marking((Mark(self.end, encode_completed(None)),), notices=self._completed)
        self.overall = overall(index, 0, total)
        """The progress of the job when the phase begins."""
        self.text: JsonText = str(self.overall)
        self.following = Marking(notices=self.started)
        """Its start behind the end of the phase before it."""
        self.boundary: Marking | None = None
        """Its end without a result, and the start of the next phase."""
        self.is_simple = phase.is_async and phase.timeout is None and phase.attempts == 1

    def ended(self, result: JsonText | None) -> Marking:
        if result is None:
            return self._ended
        return Marking((Mark(self.end, encode_completed(result)),), notices=self._completed)


class PipelinePlan:
    """A pipeline as workers run it."""

    __slots__ = ("_first_boundary", "beginning", "names", "phases")

    def __init__(self, pipeline: Pipeline) -> None:
        total = len(pipeline.phases)
        self.names = list(pipeline.names)
        self.phases = tuple(PhasePlan(phase, index, total) for index, phase in enumerate(pipeline.phases))
        names = Mark(PIPELINE, encode(self.names, "pipeline", _LONGEST))
        self.beginning = Marking((names,), notices=self.phases[0].started)
        """The start of the first phase, in a job without any marks."""
        for phase, following in pairwise(self.phases):
            phase.boundary = phase.ended(None).then(following.following)
        first = self.phases[0].boundary
        self._first_boundary = None if first is None else self.beginning.then(first)

    def joined(self, posted: Marking, marking: Marking) -> Marking:
        """Both in one step. If no phase had a result, it is one object for all runs, as the parts: stores profit."""
        if self._first_boundary is not None and posted is self.beginning and marking is self.phases[0].boundary:
            return self._first_boundary
        return posted.then(marking)
