"""Looking at jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from ...client.flow_tree import FlowNode
from ...client.looking import MOST_LINES
from ...client.timeline import timeline_of
from ...errors import JobCancelled, JobFailed, JobNotFound, NoResult, ResultTimeout
from ...job.codec import Json
from ...job.flows import ChildState, Policy
from ...job.instants import moment_of
from ...job.states import State
from ...store.values import BATCH, FailedAttempt, LogLine
from ..routes import Call, Route
from ..views import JobView, view_of
from ..waits import held, refuse_gone


class JobQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to list."""

    state: tuple[str, ...] = ()
    """Can be repeated; all by default."""
    type: str | None = None
    tag: str | None = None
    limit: int = 100
    """Up to 1,000."""
    after: str | None = None
    """The `next` of the page before."""
    newest_first: bool = False
    stale: bool = False
    """Only finished jobs that are stale, by the retention of their queue."""


class JobViews(msgspec.Struct, frozen=True):
    jobs: list[JobView]
    next: str | None = None
    """The `after` of the next page."""


class TimelineStep(msgspec.Struct, frozen=True):
    at: datetime
    event: str
    data: dict[str, Any]


class Attempt(msgspec.Struct, frozen=True):
    """A failed attempt."""

    attempt: int
    at: datetime
    worker: str | None
    reason: str
    trace: str
    started_at: datetime | None = None


class Line(msgspec.Struct, frozen=True):
    at: datetime
    text: str


class JobDetails(msgspec.Struct, frozen=True):
    """A job with all that is known of it."""

    job: JobView
    timeline: list[TimelineStep]
    """Of the events that are still kept, and before these of its record."""
    failures: list[Attempt]
    log: list[Line]
    dropped_log_lines: int


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: int | None = None
    limit: int = 100
    newest_first: bool = False


class LogView(msgspec.Struct, frozen=True):
    lines: list[Line]
    newest: int
    """The number of the newest line: the `after` for later ones."""
    next: int | None = None
    """The `after` of the next page."""


class ResultQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wait: float = 0.0
    """Seconds to wait for the job's end."""


class ResultView(msgspec.Struct, frozen=True):
    """How a job ended; its `state` is not final if it did not within the wait."""

    state: State
    result: Json = None
    reason: str | None = None


class FlowQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    depth: int = 100
    limit: int = 1_000


class FlowView(msgspec.Struct, frozen=True):
    """A job of a flow with its children."""

    queue: str
    id: str
    state: State | ChildState
    job: JobView | None
    """None if it was removed: `state` is then what its parent knows."""
    policy: Policy | None
    reason: str | None
    children: list[FlowView]
    counts: dict[ChildState, int]
    hidden: int
    """Children that are not listed."""


async def find(call: Call) -> JobViews:
    asked: JobQuery = call.query
    page = await call.queue.find(
        *asked.state,
        name=asked.type,
        limit=clamped(asked.limit),
        after=asked.after,
        newest_first=asked.newest_first,
        tag=asked.tag,
        stale=asked.stale,
    )
    return JobViews([view_of(job.snapshot) for job in page], page.next)


async def get(call: Call) -> JobView:
    job = await call.queue.get(call.params["id"])
    if job is None:
        raise JobNotFound(call.queue.name, call.params["id"])
    return view_of(job.snapshot)


async def details(call: Call) -> JobDetails:
    queue, id = call.queue, call.params["id"]
    job = await queue.get(id)
    if job is None:
        raise JobNotFound(queue.name, id)
    history = await queue.history(id)
    timeline = await timeline_of(queue, job.snapshot, history)
    return JobDetails(
        view_of(job.snapshot),
        [TimelineStep(moment_of(entry.at), entry.name, entry.data) for entry in timeline],
        [_attempt(failed) for failed in history.failures],
        _lines(history.log),
        history.dropped_log_lines,
    )


async def log(call: Call) -> LogView:
    asked: LogQuery = call.query
    after = None if asked.after is None else min(max(asked.after, 0), MOST_LINES)
    limit = clamped(asked.limit)
    page = await call.queue.logs(call.params["id"], after=after, limit=limit, newest_first=asked.newest_first)
    return LogView(_lines(page.lines), page.newest, page.next)


async def result(call: Call) -> ResultView:
    queue, id = call.queue, call.params["id"]
    job = await queue.get(id)
    if job is None:
        raise JobNotFound(queue.name, id)
    wait = min(max(call.query.wait, 0), call.broker.limits.wait)
    if wait and job.snapshot.finished_at is None:
        ended = _Ended(job, wait)
        _, is_gone = await held(call, ended.wait(), ended.interrupt)
        refuse_gone(is_gone)
        job = await queue.get(id)
        if job is None:
            # It ended, and was removed at once.
            return ended.view()
    snapshot = job.snapshot
    return ResultView(snapshot.state, snapshot.result, snapshot.reason)


class _Ended:
    """A wait for the end of a job that can be interrupted."""

    def __init__(self, job: Any, seconds: float) -> None:
        self._job, self._seconds = job, seconds
        self._task: Any = None
        self._view: ResultView | None = None

    async def wait(self) -> None:
        self._task = asyncio.ensure_future(self._job.result(self._seconds))
        try:
            self._view = ResultView("completed", await self._task)
        except (ResultTimeout, asyncio.CancelledError):
            pass
        except JobFailed as error:
            self._view = ResultView("failed", None, error.reason)
        except JobCancelled as error:
            self._view = ResultView("cancelled", None, error.reason)
        except NoResult:
            pass

    def interrupt(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def view(self) -> ResultView:
        if self._view is None:
            raise JobNotFound(self._job.queue.name, self._job.id)
        return self._view


async def flow(call: Call) -> FlowView:
    asked: FlowQuery = call.query
    tree = await call.queue.flow(call.params["id"], depth=min(max(asked.depth, 0), 100), limit=clamped(asked.limit))
    for node in tree.walk():
        call.reach([node.queue])
    return _flow_view(tree)


def clamped(limit: int) -> int:
    return min(max(limit, 1), BATCH)


def _flow_view(node: FlowNode) -> FlowView:
    return FlowView(
        node.queue,
        node.id,
        node.state,
        None if node.snapshot is None else view_of(node.snapshot),
        node.policy,
        node.reason,
        [_flow_view(child) for child in node.children],
        node.counts,
        node.hidden,
    )


def _attempt(failed: FailedAttempt) -> Attempt:
    return Attempt(
        failed.attempt, moment_of(failed.at), failed.worker, failed.reason, failed.trace, moment_of(failed.started_at)
    )


def _lines(lines: Iterable[LogLine]) -> list[Line]:
    return [Line(moment_of(line.at), line.text) for line in lines]


_JOBS: Final = "/v1/queues/{queue}/jobs"


_JOB: Final = f"{_JOBS}/{{id}}"


ROUTES: Final = (
    Route("GET", _JOBS, find, ("read",), "Lists jobs, state by state.", query=JobQuery, answer=JobViews, tag="jobs"),
    Route("GET", _JOB, get, ("follow",), "A job as it is.", answer=JobView, tag="jobs"),
    Route(
        "GET",
        f"{_JOB}/details",
        details,
        ("read",),
        "A job with timeline, failures and log.",
        answer=JobDetails,
        tag="jobs",
    ),
    Route("GET", f"{_JOB}/log", log, ("read",), "Lines of a job's log.", query=LogQuery, answer=LogView, tag="jobs"),
    Route(
        "GET",
        f"{_JOB}/result",
        result,
        ("follow",),
        "How a job ended; waits for it if asked.",
        query=ResultQuery,
        answer=ResultView,
        tag="jobs",
    ),
    Route(
        "GET",
        "/v1/queues/{queue}/flows/{id}",
        flow,
        ("read",),
        "A job with its children, to any depth.",
        query=FlowQuery,
        answer=FlowView,
        tag="jobs",
    ),
)
