"""What workers send and receive over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from ..job.codec import Json
from ..job.states import State
from ..store.values import BATCH
from .job_fields import Span

MOST_LINES: Final = 1_000
"""Most log lines of one call."""


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker asks for jobs."""

    worker: str
    """A name of its own."""
    count: Annotated[int, msgspec.Meta(ge=1, le=BATCH)] = 1
    types: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=BATCH)] | None = None
    """Only jobs of these types."""
    wait: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds to wait for a job, if there is none."""
    timeout: Span | None = None
    """How long the jobs stay with it without a heartbeat; the server's default is 30 s."""


class ClaimedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is the worker's until its timeout has passed without a heartbeat."""

    id: str
    queue: str
    type: str
    payload: Json
    token: str
    """Proves that it is the worker's: all further calls about the job take it."""
    attempt: int
    """1 for the first."""
    max_attempts: int
    created_at: datetime
    locked_until: datetime
    stalled_count: int = 0
    progress: Json = None
    """That of an earlier attempt."""
    tags: tuple[str, ...] = ()
    children: int = 0


class ClaimedJobs(msgspec.Struct, frozen=True):
    jobs: list[ClaimedJob]
    heartbeat: float
    """Send a heartbeat this often, in seconds."""
    timeout: float
    """Without one the jobs are given to others after so many seconds."""
    drain: bool = False
    """True if somebody asks this worker to end: it gets no more jobs."""


class Settling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call about a job, by the token of its claim."""

    token: str
    worker: str | None = None
    """If given, the token must be of this worker."""


class Heartbeat(Settling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    timeout: Span | None = None
    """From now on; the server's default is 30 s."""


class Completion(Settling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    result: Json = None


class FailureReport(Settling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    error: str
    """What went wrong, in words."""
    trace: str = ""
    delay: Span | None = None
    """Before the next attempt; otherwise the job's backoff says it."""
    retry: bool = True
    """False if no further attempt can help: the job fails at once."""


class Release(Settling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    delay: Span | None = None
    """Before it may be claimed again."""


class ProgressReport(Settling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    progress: Json


class LogReport(Settling, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lines: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MOST_LINES)]


class HeartbeatItem(Heartbeat, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


class CompletionItem(Completion, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


class FailureItem(FailureReport, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


class ReleaseItem(Release, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


class ProgressItem(ProgressReport, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


class LogItem(LogReport, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str


_Many = msgspec.Meta(min_length=1, max_length=BATCH)


class Heartbeats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jobs: Annotated[tuple[HeartbeatItem, ...], _Many]


class Completions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jobs: Annotated[tuple[CompletionItem, ...], _Many]


class FailureReports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jobs: Annotated[tuple[FailureItem, ...], _Many]


class Releases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jobs: Annotated[tuple[ReleaseItem, ...], _Many]


class ProgressReports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jobs: Annotated[tuple[ProgressItem, ...], _Many]


class LogReports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    jobs: Annotated[tuple[LogItem, ...], _Many]


class ItemAnswer(msgspec.Struct, frozen=True):
    """The answer for one job of a batch."""

    id: str
    verdict: Literal["done", "lost", "missing", "refused"]
    """`lost`: it is no longer this worker's, so stop working on it; `missing`: there is no such job."""
    state: State | None = None


class ItemAnswers(msgspec.Struct, frozen=True):
    jobs: list[ItemAnswer]
