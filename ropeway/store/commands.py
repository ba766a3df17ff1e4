"""The verbs of the store contract as data: one frozen struct per verb, with the type of its answer.

A store executes them (`Store.do`), a proxy passes them on, and `store.wire` carries them over a network: the struct
is the wire format. Fields are only ever added at the end, with a default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, get_args

import msgspec

from ..job.codec import JsonText
from ..job.instants import Instant, Milliseconds
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.states import State
from .values import (
    Added,
    Answer,
    Claimed,
    Cleaned,
    Counts,
    Entries,
    History,
    JobChange,
    JobUpdate,
    Lock,
    LogPage,
    Metric,
    Page,
    Record,
    Remembered,
    Revoked,
    Settings,
    Settled,
    StallRules,
    Ticked,
)

A = TypeVar("A")


def _verb(name: str) -> str:
    """`TrimEvents` is "trim_events", and `ReadEvents` is "events": the method's name, and the tag on the wire."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub("^(Read|List)", "", name)).lower()


class Command(msgspec.Struct, Generic[A], frozen=True, tag=_verb, tag_field="verb"):
    """A call of a verb that answers an `A`."""


# Produce


class Add(Command[list[list[Added]]], frozen=True):
    """Stores each bundle whole or not at all; bundles do not depend on each other."""

    bundles: Sequence[Sequence[NewJob]]


# Run


class Claim(Command[Claimed], frozen=True):
    """Gives the most urgent waiting jobs to one worker, and each to no one else.

    Jobs whose delay has ended are promoted first. Paused queues and names give nothing.
    """

    queue: str
    worker: str
    token: str
    """Becomes the token of every job that this claim takes. Never used for a second request."""
    limit: int
    lock: Milliseconds
    names: tuple[str, ...] | None = None
    """Only jobs of these names; None takes every name."""
    repeat: bool = False
    """The answer to this very request was lost: give the same jobs again, and no others."""
    isolates: bool = False
    """The claimer marks the attempts that run alone, by `JobUpdate.alone`. Without it all of them count as alone."""


class Settle(Command[Settled], frozen=True):
    """Records how attempts ended and claims the next jobs, in one step."""

    queue: str
    outcomes: Sequence[Outcome]
    then: Claim | None = None


class Renew(Command[list[Answer]], frozen=True):
    """Extends locks to `lock` from now. A lock that ran out but was not yet recovered still holds."""

    queue: str
    locks: Sequence[Lock]
    lock: Milliseconds


class Update(Command[list[Answer]], frozen=True):
    """Adds progress, data and log lines to jobs."""

    queue: str
    updates: Sequence[JobUpdate]


# Keep in order


class Tick(Command[Ticked], frozen=True):
    """Promotes what is due, recovers what stalled, removes what retention ends, trims events.

    At most `BATCH` jobs of each kind.
    """

    queue: str
    rules: StallRules


# Operate


class Cancel(Command[list[Answer]], frozen=True):
    """Repeated on a cancelled job it answers `done` with the state `cancelled`."""

    queue: str
    ids: Sequence[str]
    reason: str | None = None


class Retry(Command[list[Answer]], frozen=True):
    """Finished jobs wait again, for one more run; `reset` sets their counters to 0."""

    queue: str
    ids: Sequence[str]
    reset: bool = False


class Promote(Command[list[Answer]], frozen=True):
    """Delayed jobs wait from now on."""

    queue: str
    ids: Sequence[str]


class Change(Command[list[Answer]], frozen=True):
    """Changes where jobs stand, and their data."""

    queue: str
    changes: Sequence[JobChange]


class Remove(Command[list[Answer]], frozen=True):
    """Active jobs are refused unless forced; their token is then revoked."""

    queue: str
    ids: Sequence[str]
    force: bool = False


class Configure(Command[Settings], frozen=True):
    """Changes what is given and answers all settings; `max_active=0` takes the limit away."""

    queue: str
    pause: bool | None = None
    pause_names: Sequence[str] = ()
    resume_names: Sequence[str] = ()
    max_active: int | None = None


class ClearLog(Command[Answer], frozen=True):
    """Drops a job's oldest log lines but `keep`, whatever its state."""

    queue: str
    id: str
    keep: int = 0


class Publish(Command[None], frozen=True):
    """Writes an event of the application's own into the stream; `data` is an object. Repeated, it writes two."""

    queue: str
    name: str
    data: JsonText


class TrimEvents(Command[None], frozen=True):
    """Drops the oldest events: at most `keep` stay, and in any case those of the newest move of one job.

    A job's events of one move stay or go together, and `retries-exhausted` is not counted.
    """

    queue: str
    keep: int = 0


class Clean(Command[Cleaned], frozen=True):
    """Removes jobs that finished (or were added, if they are not final) at least that long ago, oldest first.

    Active jobs are never cleaned. Announces `cleaned` when it removed any.
    """

    queue: str
    state: State
    older_than: Milliseconds = 0
    limit: int = 1_000


class Obliterate(Command[Cleaned], frozen=True):
    """Pauses the queue and removes everything in it, a batch at a time; call until `more` is False.

    The last call forgets its settings, counters, metrics and events too.
    """

    queue: str
    force: bool = False


# Look


class Get(Command[list[JobRecord | None]], frozen=True):
    queue: str
    ids: Sequence[str]


class Find(Command[Page], frozen=True):
    """One page of the jobs in some states, in the order of the states and within each in its own order."""

    queue: str
    states: tuple[State, ...]
    name: str | None = None
    limit: int = 100
    after: str | None = None
    """The `next` of the page before."""
    newest_first: bool = False
    """All of it the other way round, the order of the states too."""
    tag: str | None = None
    """Only jobs that have it."""


class Count(Command[Counts], frozen=True):
    """From maintained counters; every state is in it."""

    queue: str


class CountWaiting(Command[list[int]], frozen=True):
    """How many jobs of each of these priorities wait."""

    queue: str
    priorities: Sequence[int]


class ReadMetrics(Command[list[Metric]], frozen=True):
    """Per minute, oldest first; minutes in which nothing happened are left out."""

    queue: str
    since: Instant = 0


class ReadHistory(Command[History | None], frozen=True):
    queue: str
    id: str


class ReadLog(Command[LogPage | None], frozen=True):
    """Lines of a job's log that come after that number, in the order asked for."""

    queue: str
    id: str
    after: int | None = None
    limit: int = 100
    newest_first: bool = False


class ReadSettings(Command[Settings], frozen=True):
    queue: str


class ListQueues(Command[list[str]], frozen=True):
    """Every queue that has jobs or settings, by name."""


class ReadClock(Command[Instant], frozen=True):
    """The store's clock."""


# Hear


class ReadEvents(Command[Entries], frozen=True):
    """Entries in order, from the oldest kept one, or after an id (`inclusive`: from that id on).

    `after="now"` answers no entries but the cursor of the newest.
    """

    queue: str
    after: str | None = None
    inclusive: bool = False
    limit: int = 1_000


class ReadRevoked(Command[Revoked], frozen=True):
    """Locks of running jobs that were cancelled or removed under their workers; kept for a minute or more.

    Without `after` it answers only where to begin.
    """

    queue: str
    after: str | None = None


# Remember


class Remember(Command[Remembered], frozen=True):
    """Writes a record. With `expect` only if its version is that one (0: it does not exist)."""

    record: Record
    expect: int | None = None
    lasting: Milliseconds | None = None


class Recall(Command[list[Record]], frozen=True):
    """All records of a kind, or the one with that key; expired ones are left out."""

    kind: str
    key: str | None = None


class Forget(Command[bool], frozen=True):
    """Whether there was one; an expired record counts as none."""

    kind: str
    key: str


COMMANDS: tuple[type[Command[Any]], ...] = tuple(Command.__subclasses__())


def verb_of(command: Command[Any]) -> str:
    """The name of the command's method, and of its tag on the wire."""
    return str(type(command).__struct_config__.tag)


def answer_type(command: type[Command[A]]) -> Any:
    """What the command's answer is, for decoders."""
    [base] = command.__orig_bases__  # type: ignore[attr-defined]
    [answer] = get_args(base)
    return answer
