"""Retention of a whole queue in two stages: finished jobs become stale after one age, and are deleted after another.

Stores keep no mark per job. Everything that ended up to one instant of the queue, `stale_until`, is stale, and `tick`
moves that instant on:

     ended:   a  b  c  d     e  f          g
              ─────────┼─────────────┼─────────> time
     deleted <─┘       └ stale_until └ now - stale_after

So a job that is retried by hand is no longer stale, and being stale costs a job nothing. If some worker has a callback
for a stage, the same step adds a job for each call to a queue of callbacks, which workers serve beside their own.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, Literal, TypeAlias

import msgspec

from ..errors import InvalidOption
from ..showing import shown
from .backoff import Backoff
from .codec import JsonText
from .durations import Duration, milliseconds
from .extras import Extras, Origin
from .instants import LAST_INSTANT, Instant, Milliseconds
from .names import LONGEST_ID, LONGEST_QUEUE
from .options import StoredOptions
from .record import JobRecord, NewJob
from .retention import KEEP_COMPLETED, KEEP_FAILED, NOT_AT_ALL, Retention

Stage: TypeAlias = Literal["stale", "deleted"]
"""A stage is also the name of the event that announces it."""
STAGES: Final[tuple[Stage, ...]] = ("stale", "deleted")


def stages_in(words: Container[str]) -> tuple[Stage, ...]:
    """The stages among some words, in their order."""
    stages: list[Stage] = [stage for stage in STAGES if stage in words]
    return tuple(stages)


CALLBACK_BATCH: Final = 100
"""Most jobs that one step moves to a stage with callbacks: it copies each of them, with its data and result."""

SYSTEM_PREFIX: Final = "ropeway."
"""How the names of Ropeway's own queues begin; for callbacks, the stage and the queue's name follow."""

CALLBACK_OPTIONS: Final[JsonText] = (
    msgspec.json.encode(
        StoredOptions(
            # The retries span about a day: 5 s, doubled up to 4 hours.
            attempts=17,
            backoff=Backoff("exponential", 5_000, 4 * 3_600_000, 0.2),
            keep_completed=NOT_AT_ALL,
            keep_failed=Retention(age=30 * 24 * 3_600_000),
        )
    )
).decode()

DEFAULT_KEEPS: Final = (KEEP_COMPLETED, KEEP_FAILED)
BY_QUEUE: Final = Retention(age=LAST_INSTANT)
"""Replaces the defaults in a queue that deletes: neither an age nor a count of its own removes the job."""

ID_KEPT: Final = 200
"""How many characters of a job's id are in that of its callback, the last ones: the id may be as long as ids may be."""


class Stages(msgspec.Struct, frozen=True, omit_defaults=True):
    """The retention of a queue in stages."""

    stale_after: Milliseconds | None = None
    delete_after: Milliseconds | None = None
    stale_until: Instant = 0
    """Every job that ended up to this instant is stale."""
    callbacks: tuple[Stage, ...] = ()
    """Stages for which workers have a callback."""

    def keep(self, keep: Retention) -> Retention:
        """How long a job is kept: if the queue deletes, it replaces the defaults, and other rules stay."""
        return BY_QUEUE if self.delete_after is not None and keep in DEFAULT_KEEPS else keep

    def stale_before(self, now: Instant) -> Instant | None:
        """Jobs that ended up to this instant are to become stale; None if none are."""
        return None if self.stale_after is None else now - self.stale_after

    def deleted_before(self, now: Instant) -> Instant | None:
        """Jobs that ended up to this instant are to be deleted; None if none are. None goes before it is stale."""
        if self.delete_after is None:
            return None
        return now - self.delete_after if self.stale_after is None else min(now - self.delete_after, self.stale_until)


def callback_queue(queue: str, stage: Stage) -> str:
    """The queue in which callbacks for the jobs of a queue run, one for each stage: a worker may have one callback."""
    return f"{SYSTEM_PREFIX}{stage}.{queue}"


def callback_id(stage: str, at: Instant, id: str) -> str:
    """The id of the job that calls back for another: a new one each time that this one ends."""
    return f"{stage}:{at}:{id[-ID_KEPT:]}"


def callback_job(job: JobRecord, stage: Stage) -> NewJob:
    """The job that calls back for a finished job, which becomes stale or is deleted."""
    at = job.finished_at or 0
    origin = Origin(job.queue, job.id, job.reason or "", job.attempts_made, at, job.state, job.result, stage)
    id = callback_id(stage, at, job.id)
    return NewJob(
        callback_queue(job.queue, stage), id, job.name, job.data, CALLBACK_OPTIONS, extras=Extras(origin=origin)
    )


def stage_ages(stale_after: Duration | None, delete_after: Duration | None) -> tuple[Milliseconds, Milliseconds]:
    """Checks the ages of both stages, for `configure`: 0 stands for None."""
    stale, delete = _age("stale_after", stale_after), _age("delete_after", delete_after)
    if stale and delete and delete < stale:
        raise InvalidOption("delete_after", "cannot be less than stale_after: jobs are deleted after they are stale")
    return stale, delete


def _age(option: str, given: Duration | None) -> Milliseconds:
    if given is None:
        return 0
    age = milliseconds(given, option)
    if age == 0:
        raise InvalidOption(option, f"cannot be {shown(given)}: use at least 1 ms, or None for never")
    return age


def check_callback_queues(queue: str) -> None:
    """Refuses callbacks for a queue whose name leaves no room for that of its queues of callbacks."""
    excess = max(len(callback_queue(queue, stage)) for stage in STAGES) - LONGEST_QUEUE
    if excess > 0:
        raise InvalidOption("queue", f"has a name that is too long for callbacks, by {excess} characters")


assert len(callback_id("deleted", LAST_INSTANT, "x" * LONGEST_ID)) <= LONGEST_ID, "ids of callbacks are ids"
