"""Dead letters: copies of jobs that failed for good, in a queue of their own."""

from __future__ import annotations

from ..errors import InvalidOption
from .extras import Extras, Origin
from .instants import LAST_INSTANT, Instant
from .names import LONGEST_ID
from .record import JobRecord, NewJob


def dead_letter_id(queue: str, id: str, at: Instant) -> str:
    """Another letter for each time that a job fails, and the same one when its add is repeated."""
    return f"{queue}:{id}:{at}"


def dead_letter_of(job: JobRecord, dead_letter: str, at: Instant) -> NewJob:
    """The dead letter of a job that has just failed. It has no dead letter itself."""
    origin = Origin(job.queue, job.id, job.reason or "", job.attempts_made, at, priority=job.priority, tags=job.tags)
    id = dead_letter_id(job.queue, job.id, at)
    return NewJob(dead_letter, id, job.name, job.data, job.options, extras=Extras(origin=origin))


def is_dead_letter(job: JobRecord) -> bool:
    """False for deliveries and callbacks of retention, which have an origin too."""
    extras = job.extras
    if extras is None or extras.origin is None:
        return False
    return extras.webhook is None and extras.origin.stage is None


def check_dead_letter(dead_letter: str, queue: str, id: str) -> None:
    """Refuses what could not be stored once the job has failed."""
    if dead_letter == queue:
        raise InvalidOption("dead_letter", f"cannot be {queue!r}, the job's own queue")
    longest = len(dead_letter_id(queue, id, LAST_INSTANT))
    if longest > LONGEST_ID:
        raise InvalidOption("id", f"is too long for a job with a dead letter, by {longest - LONGEST_ID} characters")
