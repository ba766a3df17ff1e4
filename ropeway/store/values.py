"""Values that the store's commands take and answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ..job.codec import JsonText, OpaqueText
from ..job.events import Entry
from ..job.flows import Child, ChildState, Policy
from ..job.instants import Instant, Milliseconds
from ..job.marks import Marking
from ..job.names import JobId
from ..job.numbers import Amount, Priority, Version
from ..job.record import JobRecord, NewJob
from ..job.stages import Stages
from ..job.stalls import OnStalled
from ..job.states import State

BATCH: Final = 1_000
"""Most jobs of each kind that one call of `tick`, `clean` or `obliterate` processes."""

DUE_SCHEDULES: Final = 200
"""Most due schedules that one `tick` answers."""

Topic: TypeAlias = Literal["jobs", "events", "revoked", "schedules"]
Why: TypeAlias = Literal["cancelled", "removed"]
"""Why the lock of a running job was revoked."""


AddVerdict: TypeAlias = Literal["created", "found", "conflict", "skipped", "deduplicated"]


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The answer for one item of a batch."""

    verdict: Literal["done", "lost", "missing", "refused"]
    """`done`: also for a repeated call; `lost`: the token is not the current one; `refused`: not in this state."""
    state: State | None = None
    """The job's state before the call; for `refused` the state that did not allow it."""


DONE: Final = Answer("done")
MISSING: Final = Answer("missing")
HELD: Final = Answer("done", "active")
"""To an outcome or an update by the holder of a job."""


class Added(msgspec.Struct, frozen=True, gc=False):
    """The answer for one job of a bundle. With any `conflict`, nothing of its bundle was stored."""

    id: str
    verdict: AddVerdict
    """`found`: the id exists with the same name and data; `conflict`: with others; `skipped`: another job conflicts.

    `deduplicated`: the job with this `id` holds the key, and nothing new was stored. Of a flow whose first job is
    deduplicated, the others are `skipped`.
    """


class Claimed(msgspec.Struct, frozen=True):
    jobs: list[JobRecord]
    now: Instant
    """The store's clock at the claim; 0 if the claim was withdrawn before it looked for jobs."""
    again_at: Instant | None = None
    """With fewer jobs than asked for: when the next claim may find more without a wake-up."""
    waited: Milliseconds = 0
    """How long after it was sent a waiting claim took the jobs, at least: the locks are no older than the rest."""

    @property
    def again_in(self) -> float | None:
        """Seconds from the claim to `again_at`, and 0 if that has passed."""
        return None if self.again_at is None else max(0, self.again_at - self.now) / 1000


class Settled(msgspec.Struct, frozen=True):
    answers: list[Answer]
    claimed: Claimed | None = None


class Lock(msgspec.Struct, frozen=True, gc=False):
    id: str
    token: str


class JobUpdate(msgspec.Struct, frozen=True, gc=False):
    """An update of a job by its handler or the application. Unset parts stay unchanged."""

    id: JobId
    token: str | None = None
    """With a token the job must be active under it; without one it must not be final."""
    progress: JsonText | None = None
    data: JsonText | None = None
    log: tuple[str, ...] = ()
    keep_logs: Amount = 1_000
    alone: bool | None = None
    """True if this attempt runs without any other handler in its process, so that a stall can be blamed on it."""
    clears_stalls: bool = False
    """True if an active job has come further than when it stalled: earlier stalls no longer count."""
    children: tuple[Child, ...] = ()
    """Children that an active job gets; those it has already are left as they are."""
    adds: tuple[NewJob, ...] = ()
    """These children and their descendants, as in a bundle. If an id exists, the answer is `refused`."""
    marking: Marking | None = None
    """Without a token it promotes the job, if that is delayed until there is one of these marks (`Outcome.awaits`)."""

    def after(self, earlier: JobUpdate) -> JobUpdate:
        """This update of progress, marks or data, and in the same step an earlier one of progress and marks."""
        progress = earlier.progress if self.progress is None else self.progress
        before, then = earlier.marking, self.marking
        marking = before.then(then) if before is not None and then is not None else before or then
        clears_stalls = self.clears_stalls or earlier.clears_stalls
        return replace(self, progress=progress, marking=marking, clears_stalls=clears_stalls)


class JobChange(msgspec.Struct, frozen=True):
    """A change of a job's position or data. Priority and lifo: waiting or delayed; delay: delayed; data: not final."""

    id: str
    priority: Priority | None = None
    lifo: bool | None = None
    delay: Milliseconds | None = None
    due_at: Instant | None = None
    data: JsonText | None = None


class StallRules(msgspec.Struct, frozen=True):
    max_stalled_count: Amount = 1
    on_stalled: OnStalled = "requeue"
    counts_as_attempt: bool = False
    ends: Mapping[str, str] = {}
    """How worker processes ended (see `job.stalls.process_of`), such as "was killed by SIGKILL"."""


class StoredSchedule(msgspec.Struct, frozen=True):
    """A schedule as stores have it: only `next_at` and `version` mean something to them."""

    id: str
    value: JsonText
    next_at: Instant | None = None
    """When it is due; None if it is paused or has ended."""
    version: int = 0


class ScheduleWrite(msgspec.Struct, frozen=True):
    """A new value of a schedule, with the jobs that its ticks make."""

    id: str
    value: JsonText | None
    """None removes the schedule."""
    next_at: Instant | None = None
    expect: Version | None = None
    """Only if this is its version now (0: it does not exist); None: whatever it is."""
    adds: tuple[NewJob, ...] = ()
    """Jobs of the same queue, added one by one in the same step."""
    removes: tuple[str, ...] = ()
    """Ids of jobs to remove in the same step; active and final ones stay."""


class ScheduleWritten(msgspec.Struct, frozen=True):
    verdict: Literal["done", "lost"]
    """`lost`: the version is another one, and nothing happened."""
    schedule: StoredSchedule | None = None
    """The schedule after the call; None if it does not exist."""
    added: list[Added] = []


class KeyHolder(msgspec.Struct, frozen=True):
    """The job that holds a dedupe key."""

    id: str
    until: Instant | None = None
    """Until then a `throttle` holds it, whatever becomes of the job."""
    next: str | None = None
    """The job that waits for its end, by `keep-last`."""

    def is_over(self, now: Instant) -> bool:
        """True if its time has passed: the key is free, though the store still has it."""
        return self.until is not None and self.until <= now


class Ticked(msgspec.Struct, frozen=True):
    promoted: int = 0
    stalled: list[str] = []
    """Ids that went back to waiting."""
    given_up: list[str] = []
    removed: int = 0
    next_at: Instant | None = None
    """When the next delay, lock or retention ends; None while there is none."""
    more: bool = False
    """A batch was full: tick again at once."""
    now: Instant = 0
    reset: bool = False
    """True if the store was emptied since this handle ticked last: the jobs that the worker held are gone."""
    expired: int = 0
    schedules: list[StoredSchedule] = []
    """Schedules that are due, the earliest first, at most `DUE_SCHEDULES`. They stay due until they are written."""
    stale: int = 0
    """How many jobs became stale. Those that were deleted are among `removed`."""


class Settings(msgspec.Struct, frozen=True):
    """Settings of a whole queue, for every worker on it."""

    paused: bool = False
    paused_names: tuple[str, ...] = ()
    max_active: int | None = None
    """`set_global_concurrency`"""
    stages: Stages | None = None
    """`set_retention`"""


class Page(msgspec.Struct, frozen=True):
    jobs: list[JobRecord]
    next: str | None = None


class Cleaned(msgspec.Struct, frozen=True):
    ids: list[str]
    more: bool = False
    active: int = 0
    """For `obliterate`: number of active jobs because of which nothing was removed."""


class Metric(msgspec.Struct, frozen=True):
    """Counts of one minute."""

    minute: Instant
    added: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    stalled: int = 0
    cancelled: int = 0
    removed: int = 0


class FailedAttempt(msgspec.Struct, frozen=True):
    attempt: int
    at: Instant
    """When it ended."""
    worker: str | None
    reason: str
    trace: str = ""
    started_at: Instant | None = None


class LogLine(msgspec.Struct, frozen=True):
    at: Instant
    text: str


class History(msgspec.Struct, frozen=True):
    """Failed attempts and log lines of a job, oldest first."""

    failures: list[FailedAttempt]
    log: list[LogLine]
    dropped_log_lines: int = 0

    def log_of(self, attempt: FailedAttempt) -> list[LogLine]:
        """The kept lines that were written while the attempt ran."""
        began = attempt.at if attempt.started_at is None else attempt.started_at
        return [line for line in self.log if began <= line.at <= attempt.at]


class LogPage(msgspec.Struct, frozen=True):
    """Lines of a job's log. They are numbered from 1 in the order of writing; dropped lines keep their numbers."""

    lines: list[LogLine]
    newest: int = 0
    """The number of the newest line ever written: the `after` for later lines."""
    next: int | None = None
    """The `after` of the next page; None if this is the last one."""

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[LogLine]:
        return iter(self.lines)


class ChildStatus(msgspec.Struct, frozen=True, gc=False):
    """A child as its parent knows it, also when retention has removed it."""

    queue: str
    id: str
    policy: Policy
    state: ChildState = "pending"
    result: JsonText | None = None
    reason: str | None = None


class Children(msgspec.Struct, frozen=True):
    """A page of a job's children, in the order in which they were added."""

    children: list[ChildStatus]
    counts: dict[ChildState, int]
    """Of all its children."""
    next: str | None = None
    awaited: bool = False
    """True if the job waits for them, or would if it were postponed until they end."""


class StoredEntry(msgspec.Struct, frozen=True):
    id: str
    entry: Entry


class Entries(msgspec.Struct, frozen=True):
    entries: list[StoredEntry]
    cursor: str
    """The `after` of the next call, also when there were no entries."""
    gap: bool = False
    """Entries after the given id were trimmed before they were read."""


class RevokedLock(msgspec.Struct, frozen=True, gc=False):
    id: str
    token: str
    why: Why


class Revoked(msgspec.Struct, frozen=True):
    locks: list[RevokedLock]
    cursor: str


class Record(msgspec.Struct, frozen=True):
    """A small versioned record, such as a worker's presence."""

    kind: str
    key: str
    value: OpaqueText
    version: Version = 0
    expires_at: Instant | None = None


class Remembered(msgspec.Struct, frozen=True):
    verdict: Literal["done", "lost"]
    """`lost`: another caller wrote a newer version first."""
    record: Record | None
    """The stored record after the call."""


Counts: TypeAlias = dict[State, int]
Details: TypeAlias = dict[str, Any]
