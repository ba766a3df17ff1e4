"""The commands of the store contract as data: one frozen struct each, with the type of its answer.

A store executes them (`Store.do`), a proxy passes them on, and `store.wire` encodes them for a network: the struct is
the wire format. Fields are only ever added at the end, with a default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, get_args

import msgspec

from ..job.codec import JsonText
from ..job.flows import CHILD_STATES, ChildState
from ..job.instants import Instant, Milliseconds
from ..job.marks import Marking
from ..job.numbers import Amount, Priority, Version
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.stages import Stage
from ..job.states import State
from .values import (
    Added,
    Answer,
    Children,
    Claimed,
    Cleaned,
    Counts,
    Entries,
    History,
    JobChange,
    JobUpdate,
    KeyHolder,
    Lock,
    LogPage,
    Metric,
    Page,
    Record,
    Remembered,
    Revoked,
    ScheduleWrite,
    ScheduleWritten,
    Settings,
    Settled,
    StallRules,
    StoredSchedule,
    Ticked,
)

A = TypeVar("A")


def _verb(name: str) -> str:
    """`TrimEvents` becomes "trim_events", `ReadEvents` "events": the method's name, and the tag on the wire."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub("^(Read|List)", "", name)).lower()


class Command(msgspec.Struct, Generic[A], frozen=True, tag=_verb, tag_field="verb"):
    """A command whose answer is an `A`."""


# Produce


class Add(Command[list[list[Added]]], frozen=True):
    """Stores each bundle completely or not at all; bundles do not depend on each other.

    A job whose dedupe key is held counts as stored: it is answered `deduplicated`.
    """

    bundles: Sequence[Sequence[NewJob]]


# Run


class Claim(Command[Claimed], frozen=True):
    """Gives the most urgent waiting jobs to one worker, each to no other.

    Due jobs are promoted first, and jobs that were not started in time expire. Paused queues and names give nothing.
    """

    queue: str
    worker: str
    token: str
    """Becomes the token of every claimed job. Never used for a second request."""
    limit: Amount
    lock: Milliseconds
    names: tuple[str, ...] | None = None
    """Only jobs of these names; None takes every name."""
    repeat: bool = False
    """The answer to this same request was lost: give the same jobs again, and no others."""
    isolates: bool = False
    """The worker marks attempts that run alone by `JobUpdate.alone`. If false, all attempts count as alone."""
    wait: Milliseconds = 0
    """How long the store holds the claim while it finds no job; 0, and in `Settle.then`: it answers at once.

    The claim looks for jobs again when some may have come, and a last time when its wait is over.
    """


class Withdraw(Command[Claimed], frozen=True):
    """Ends the wait of a claim: it is answered at once, and takes no more jobs.

    Answers the jobs that it holds under its token. Its own answer has them too, if it still arrives.
    """

    queue: str
    worker: str
    token: str
    """These are the claim's."""


class Settle(Command[Settled], frozen=True):
    """Records outcomes of attempts and claims the next jobs, in one step."""

    queue: str
    outcomes: Sequence[Outcome]
    then: Claim | None = None


class Renew(Command[list[Answer]], frozen=True):
    """Extends locks to `lock` from now. An expired lock that was not yet recovered is still valid."""

    queue: str
    locks: Sequence[Lock]
    lock: Milliseconds


class Update(Command[list[Answer]], frozen=True):
    """Adds progress, data and log lines to jobs."""

    queue: str
    updates: Sequence[JobUpdate]


# Maintain


class Tick(Command[Ticked], frozen=True):
    """Promotes due jobs, recovers stalled ones, fails those that expired, removes old ones, finds due schedules.

    Old jobs are those whose retention has ended, by their own or by that of the queue, which also marks them as stale
    before. Old events and dedupe keys are removed too. At most `BATCH` jobs of each kind, and `CALLBACK_BATCH` of a
    stage with callbacks; jobs that ended in the same millisecond become stale together.
    """

    queue: str
    rules: StallRules


# Operate


class Cancel(Command[list[Answer]], frozen=True):
    """Cancels jobs that are not final, running ones included; on a cancelled job it answers `done`."""

    queue: str
    ids: Sequence[str]
    reason: str | None = None


class Retry(Command[list[Answer]], frozen=True):
    """Makes finished jobs wait again, for one more run; `reset` sets their counters to 0. Their marks stay."""

    queue: str
    ids: Sequence[str]
    reset: bool = False
    marking: Marking | None = None
    """Marks that they lose and get in the same step; its notices are not announced."""


class Promote(Command[list[Answer]], frozen=True):
    """Makes delayed jobs wait now."""

    queue: str
    ids: Sequence[str]


class Change(Command[list[Answer]], frozen=True):
    """Changes the position or data of jobs."""

    queue: str
    changes: Sequence[JobChange]


class Remove(Command[list[Answer]], frozen=True):
    """Removes jobs. Active ones are refused unless `force` is set, which revokes their token."""

    queue: str
    ids: Sequence[str]
    force: bool = False


class Configure(Command[Settings], frozen=True):
    """Changes the given settings and answers all; `max_active=0` removes the limit, `stale_after=0` that stage."""

    queue: str
    pause: bool | None = None
    pause_names: Sequence[str] = ()
    resume_names: Sequence[str] = ()
    max_active: Amount | None = None
    stale_after: Milliseconds | None = None
    delete_after: Milliseconds | None = None
    callbacks: Sequence[Stage] | None = None
    """Stages that have callbacks besides those that are known; an empty list forgets all."""


class WriteSchedules(Command[list[ScheduleWritten]], frozen=True):
    """Creates, changes, moves on or removes schedules of a queue, and adds the jobs of their ticks.

    Each write is one atomic step that compares the version, so that of several callers one makes a tick's jobs.
    """

    queue: str
    writes: Sequence[ScheduleWrite]


class ReleaseDedupe(Command[bool], frozen=True):
    """Frees a dedupe key, whatever holds it; a job that waits for its holder by `keep-last` waits in line now.

    Answers False if nothing held it.
    """

    queue: str
    key: str


class ClearLog(Command[Answer], frozen=True):
    """Drops all but the newest `keep` log lines of a job, in any state."""

    queue: str
    id: str
    keep: Amount = 0


class Publish(Command[None], frozen=True):
    """Writes an event into the stream; `data` is an object. A repeat writes a second event."""

    queue: str
    name: str
    data: JsonText
    job: str | None = None
    """The id of the job that it is about, which need not be there any more."""


class TrimEvents(Command[None], frozen=True):
    """Drops the oldest events: at most `keep` stay, but always those of the newest move of one job.

    The events of one move of a job are kept or dropped together, and `retries-exhausted` is not counted.
    """

    queue: str
    keep: Amount = 0


class Clean(Command[Cleaned], frozen=True):
    """Removes jobs that finished (or, if not final, were added) at least `older_than` ago, oldest first.

    Active jobs are never cleaned, nor are jobs of schedules before they are final. Announces `cleaned` when it removed
    any.
    """

    queue: str
    state: State
    older_than: Milliseconds = 0
    limit: Amount = 1_000


class Obliterate(Command[Cleaned], frozen=True):
    """Pauses the queue and removes everything in it, one batch per call; call until `more` is False.

    The last call removes its settings, counters, metrics and events too.
    """

    queue: str
    force: bool = False


# Read


class Get(Command[list[JobRecord | None]], frozen=True):
    queue: str
    ids: Sequence[str]


class Find(Command[Page], frozen=True):
    """One page of the jobs in some states, ordered by the given states, and within each by its own order."""

    queue: str
    states: tuple[State, ...]
    name: str | None = None
    limit: Amount = 100
    after: str | None = None
    """The `next` of the page before."""
    newest_first: bool = False
    """Reverses the order, including that of the states."""
    tag: str | None = None
    """Only jobs with this tag."""
    stale: bool = False
    """Only finished jobs that are stale."""


class Count(Command[Counts], frozen=True):
    """The number of jobs in every state, from maintained counters."""

    queue: str


class CountWaiting(Command[list[int]], frozen=True):
    """The number of waiting jobs of each given priority."""

    queue: str
    priorities: Sequence[Priority]


class ReadMetrics(Command[list[Metric]], frozen=True):
    """Counts per minute, oldest first; minutes without any are left out."""

    queue: str
    since: Instant = 0


class ReadHistory(Command[History | None], frozen=True):
    queue: str
    id: str


class ReadChildren(Command[Children | None], frozen=True):
    """A page of the children of a job, in any of the given states; None if there is no such job."""

    queue: str
    id: str
    states: tuple[ChildState, ...] = CHILD_STATES
    after: str | None = None
    """The `next` of the page before."""
    limit: Amount = 1_000


class ReadSchedules(Command[list[StoredSchedule]], frozen=True):
    """Schedules of a queue by id: those with the given ids, or a page of all after an id."""

    queue: str
    ids: Sequence[str] | None = None
    after: str | None = None
    limit: Amount = 1_000


class ReadDedupe(Command[KeyHolder | None], frozen=True):
    """The job that holds a dedupe key now."""

    queue: str
    key: str


class ReadLog(Command[LogPage | None], frozen=True):
    """Lines of a job's log after the given number, in the requested order."""

    queue: str
    id: str
    after: Version | None = None
    limit: Amount = 100
    newest_first: bool = False


class ReadSettings(Command[Settings], frozen=True):
    queue: str


class ListQueues(Command[list[str]], frozen=True):
    """Every queue that has jobs or settings, by name."""


class ReadClock(Command[Instant], frozen=True):
    """The store's clock."""


# Events


class ReadEvents(Command[Entries], frozen=True):
    """Event entries in order, from the oldest kept one, or after an id (`inclusive`: from that id on).

    `after="now"` answers no entries, only the cursor of the newest. With `newest_first`, from the newest entry back to
    older ones, or from the one before the id `after`.
    """

    queue: str
    after: str | None = None
    inclusive: bool = False
    limit: Amount = 1_000
    newest_first: bool = False


class ReadRevoked(Command[Revoked], frozen=True):
    """Locks of running jobs that were cancelled or removed; kept for at least a minute.

    Without `after` it answers only the cursor to begin with.
    """

    queue: str
    after: str | None = None


# Records


class Remember(Command[Remembered], frozen=True):
    """Writes a record; with `expect`, only if that is its current version (0: it does not exist)."""

    record: Record
    expect: Version | None = None
    lasting: Milliseconds | None = None


class Recall(Command[list[Record]], frozen=True):
    """All records of a kind, or the one with that key; expired ones are left out."""

    kind: str
    key: str | None = None


class Forget(Command[bool], frozen=True):
    """Deletes a record; answers True if it existed and had not expired."""

    kind: str
    key: str


COMMANDS: tuple[type[Command[Any]], ...] = tuple(Command.__subclasses__())


def verb_of(command: Command[Any]) -> str:
    """The name of the command's method in `Store`, which is also its tag on the wire."""
    return str(type(command).__struct_config__.tag)


def answer_type(command: type[Command[A]]) -> Any:
    """The type of the command's answer, for decoders."""
    [base] = vars(command)["__orig_bases__"]
    [answer] = get_args(base)
    return answer
