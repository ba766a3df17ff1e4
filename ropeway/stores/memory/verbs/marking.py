"""Writing marks of jobs."""

from __future__ import annotations

from msgspec.structs import replace

from ....job.codec import decode
from ....job.instants import Instant
from ....job.marks import Mark, Marking
from ....job.record import JobRecord
from ..queue_data import QueueData


def marked(queue: QueueData, job: JobRecord, marking: Marking, now: Instant) -> JobRecord:
    """The job with its new marks, announced; put it into the queue."""
    for notice in marking.notices:
        queue.announce(job.id, notice.what, decode(notice.detail))
    marks = {mark.name: mark for mark in without(job.marks, marking.forgets)}
    marks |= {mark.name: Mark(mark.name, mark.value, now) for mark in marking.marks}
    return replace(job, marks=tuple(marks[name] for name in sorted(marks)))


def without(marks: tuple[Mark, ...], names: tuple[str, ...]) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if mark.name not in names)
