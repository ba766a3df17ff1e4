"""Writing marks of jobs."""

from __future__ import annotations

from ....job.instants import Instant
from ....job.marks import Mark, Marking
from ....job.record import JobRecord
from ..queue_data import QueueData


def announced_marks(queue: QueueData, job: JobRecord, marking: Marking, now: Instant) -> tuple[Mark, ...]:
    """As `marks_after`; announces what the marking announces."""
    if marking.notices:
        queue.announce(job.id, marking.notices)
    last = queue.marked
    if last is not None and last[0] is job.marks and last[1] is marking:
        # Jobs of a pipeline that are updated together share their marks.
        return last[2]
    after = marks_after(job, marking, now)
    queue.marked = job.marks, marking, after
    return after


def marks_after(job: JobRecord, marking: Marking, now: Instant) -> tuple[Mark, ...]:
    """The marks that the job has after a marking, sorted by name."""
    if not marking.marks and not marking.forgets:
        return job.marks
    marks = {mark.name: mark for mark in job.marks}
    for name in marking.forgets:
        marks.pop(name, None)
    for mark in marking.marks:
        marks[mark.name] = Mark(mark.name, mark.value, now)
    return tuple(map(marks.__getitem__, sorted(marks)))
