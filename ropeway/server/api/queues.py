"""Queues: counts, settings and what empties them; workers and totals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ...client.queue import Queue
from ...client.workers import Order, WorkerInfo, order_worker, read_worker, read_workers
from ...errors import InvalidOption, QueueBusy
from ...job.durations import milliseconds
from ...job.instants import instant_of, moment_of
from ...job.names import job_name
from ...job.numbers import whole
from ...job.stages import Stages
from ...job.states import STATES, State, state_named
from ...store.values import BATCH, Metric
from ..job_fields import Span
from ..roles import RESERVED
from ..routes import Call, Reply, Route
from .jobs import clamped

STATS_SECONDS: Final = 1.0
"""How long totals are not computed again."""


class QueueView(msgspec.Struct, frozen=True):
    name: str
    counts: dict[State, int]
    workers: int
    """Those that run now, also over HTTP."""
    paused: bool
    paused_types: tuple[str, ...]
    max_active: int | None
    """Most jobs of the queue at once, over all workers."""
    stale_after: float | None
    """Seconds after which finished jobs are stale."""
    delete_after: float | None
    """Seconds after which they are deleted."""


class QueuesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = 100
    after: str | None = None
    """The name of the last queue of the page before."""


class QueueViews(msgspec.Struct, frozen=True):
    queues: list[QueueView]
    next: str | None = None


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    paused: bool | None = None
    pause_types: tuple[str, ...] = ()
    resume_types: tuple[str, ...] = ()
    max_active: int | UnsetType | None = UNSET
    """null removes the limit."""
    stale_after: Span | UnsetType | None = UNSET
    """How long after its end a job is stale; null removes this stage of retention."""
    delete_after: Span | UnsetType | None = UNSET
    """How long after its end a job is deleted, whatever its own retention; null removes this stage."""


class Hold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: str | None = None
    """Only jobs of this type."""


class CleanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: str = "completed"
    older_than: Span = 0
    limit: int = BATCH


class DrainRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    delayed: bool = False
    """Also delayed jobs."""


class ObliterateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    force: bool = False
    """Also while jobs are active."""


class Removed(msgspec.Struct, frozen=True):
    removed: int
    more: bool
    """True if there are more: call again."""


class MetricsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: datetime | None = None


class Minute(msgspec.Struct, frozen=True):
    """Counts of one minute."""

    at: datetime
    added: int
    completed: int
    failed: int
    retried: int
    stalled: int
    cancelled: int
    removed: int


class Minutes(msgspec.Struct, frozen=True):
    minutes: list[Minute]


class WorkersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: str | None = None


class Workers(msgspec.Struct, frozen=True):
    workers: list[WorkerInfo]


class Stats(msgspec.Struct, frozen=True):
    """Of the queues that the caller reaches."""

    queues: int
    counts: dict[State, int]
    """Jobs by state."""
    totals: dict[str, int]
    """What happened in the last two weeks, for which the store keeps counts."""
    refused_requests: int
    """Because of too much load, since this server started."""
    waiting_requests: int


async def list_queues(call: Call) -> QueueViews:
    asked: QueuesQuery = call.query
    workers = await read_workers(call.store)
    served = {name for worker in workers for name in worker.queues}
    names = sorted(name for name in {*await call.store.queues(), *served} if _is_shown(call, name))
    later = names if asked.after is None else [name for name in names if name > asked.after]
    page = later[: clamped(asked.limit)]
    views = [await _view(call.broker.queue(name), workers) for name in page]
    return QueueViews(views, page[-1] if len(page) < len(later) else None)


async def get_queue(call: Call) -> QueueView:
    return await _view(call.queue, await read_workers(call.store))


async def change_settings(call: Call) -> QueueView:
    asked: SettingsChange = call.body
    limit = asked.max_active
    if asked.stale_after is not UNSET or asked.delete_after is not UNSET:
        await _change_stages(call, asked)
    await call.store.configure(
        call.queue.name,
        pause=asked.paused,
        pause_names=[job_name(name) for name in asked.pause_types],
        resume_names=[job_name(name) for name in asked.resume_types],
        max_active=None if limit is UNSET else 0 if limit is None else whole("max_active", limit, 1),
    )
    return await get_queue(call)


async def _change_stages(call: Call, asked: SettingsChange) -> None:
    """A stage that is not given stays as it is."""
    now = (await call.queue.settings()).stages or Stages()
    kept_stale, kept_delete = (None if age is None else age / 1000 for age in (now.stale_after, now.delete_after))
    await call.queue.set_retention(
        stale_after=kept_stale if asked.stale_after is UNSET else asked.stale_after,
        delete_after=kept_delete if asked.delete_after is UNSET else asked.delete_after,
    )


async def pause(call: Call) -> None:
    await call.queue.pause(call.body.type)


async def resume(call: Call) -> None:
    await call.queue.resume(call.body.type)


async def clean(call: Call) -> Removed:
    asked: CleanRequest = call.body
    state = state_named(asked.state)
    if state == "active":
        raise InvalidOption("state", "cannot be 'active': jobs that run are not cleaned")
    age = milliseconds(asked.older_than, "older_than")
    cleaned = await call.store.clean(call.queue.name, state, older_than=age, limit=clamped(asked.limit))
    return Removed(len(cleaned.ids), cleaned.more)


async def drain(call: Call) -> Removed:
    removed, more = 0, False
    for state in ("waiting", "delayed") if call.body.delayed else ("waiting",):
        cleaned = await call.store.clean(call.queue.name, state_named(state))
        removed += len(cleaned.ids)
        more |= cleaned.more
    return Removed(removed, more)


async def obliterate(call: Call) -> Removed:
    cleaned = await call.store.obliterate(call.queue.name, force=call.body.force)
    if cleaned.active:
        raise QueueBusy(call.queue.name, cleaned.active)
    return Removed(len(cleaned.ids), cleaned.more)


async def metrics(call: Call) -> Minutes:
    since: datetime | None = call.query.since
    found = await call.store.metrics(call.queue.name, since=0 if since is None else instant_of(since, "since"))
    return Minutes([_minute(metric) for metric in found])


async def list_workers(call: Call) -> Workers:
    wanted = call.query.queue
    return Workers(
        [
            worker
            for worker in await read_workers(call.store)
            if any(call.principal.reaches(queue) for queue in worker.queues)
            and (wanted is None or wanted in worker.queues)
        ]
    )


class Ordered(msgspec.Struct, frozen=True):
    worker: str
    order: Order
    """What it was told, and does within seconds; `GET /v1/workers` says when it has."""


def _ordering(order: Order) -> Callable[[Call], Awaitable[Reply]]:
    async def tell(call: Call) -> Reply:
        worker = await read_worker(call.store, call.params["worker"])
        call.reach(worker.queues)
        await order_worker(call.store, worker, order)
        return Reply(Ordered(worker.id, order), 202)

    return tell


async def stats(call: Call) -> Stats:
    # Those that are empty have numbers too.
    known = {*await call.store.queues(), *call.broker.upkeep.queues}
    names = [name for name in known if _is_shown(call, name)]
    counts: Counter[State] = Counter()
    totals: Counter[str] = Counter()
    for name in names:
        sums = await _sums(call, name)
        counts.update(sums[0])
        totals.update(sums[1])
    admission = call.broker.admission
    kinds = [field for field in Metric.__struct_fields__ if field != "minute"]
    return Stats(
        len(names),
        {state: counts[state] for state in STATES},
        {kind: totals[kind] for kind in kinds},
        admission.refused,
        admission.waiting,
    )


async def _sums(call: Call, name: str) -> tuple[dict[State, int], dict[str, int]]:
    known = call.broker.sums.get(name)
    if known is not None and time.monotonic() - known[0] < STATS_SECONDS:
        return known[1], known[2]
    counts = await call.store.count(name)
    totals: Counter[str] = Counter()
    for metric in await call.store.metrics(name):
        for kind in metric.__struct_fields__[1:]:
            totals[kind] += getattr(metric, kind)
    call.broker.sums[name] = time.monotonic(), counts, dict(totals)
    return counts, dict(totals)


def _is_shown(call: Call, queue: str) -> bool:
    return not queue.startswith(RESERVED) and call.principal.reaches(queue)


async def _view(queue: Queue, workers: list[WorkerInfo]) -> QueueView:
    settings = await queue.settings()
    stages = settings.stages or Stages()
    return QueueView(
        queue.name,
        await queue.counts(),
        sum(queue.name in worker.queues for worker in workers),
        settings.paused,
        settings.paused_names,
        settings.max_active,
        *(None if age is None else age / 1000 for age in (stages.stale_after, stages.delete_after)),
    )


def _minute(metric: Metric) -> Minute:
    counts = {field: getattr(metric, field) for field in Minute.__struct_fields__ if field != "at"}
    return Minute(at=moment_of(metric.minute), **counts)


_QUEUE: Final = "/v1/queues/{queue}"

ORDERS: Final[dict[Order, str]] = {
    "pause": "Lets a worker claim no more; what it runs goes on.",
    "resume": "Ends the pause of a worker.",
    "drain": "Lets a worker claim no more, finish its jobs, and end.",
}

ROUTES: Final = (
    Route(
        "GET",
        "/v1/stats",
        stats,
        ("follow",),
        "Numbers of all queues together.",
        "filtered",
        answer=Stats,
        tag="queues",
    ),
    Route(
        "GET",
        "/v1/queues",
        list_queues,
        ("read",),
        "Lists queues by name.",
        "filtered",
        query=QueuesQuery,
        answer=QueueViews,
        tag="queues",
    ),
    Route("GET", _QUEUE, get_queue, ("follow",), "Counts and settings of a queue.", answer=QueueView, tag="queues"),
    Route(
        "PATCH",
        _QUEUE,
        change_settings,
        ("operate",),
        "Changes settings of a queue: pauses and limits.",
        body=SettingsChange,
        answer=QueueView,
        audited=True,
        tag="queues",
    ),
    Route("POST", f"{_QUEUE}/pause", pause, ("operate",), "Stops claims.", body=Hold, audited=True, tag="queues"),
    Route("POST", f"{_QUEUE}/resume", resume, ("operate",), "Ends a pause.", body=Hold, audited=True, tag="queues"),
    Route(
        "POST",
        f"{_QUEUE}/clean",
        clean,
        ("operate",),
        "Removes up to 1,000 old jobs of a state.",
        body=CleanRequest,
        answer=Removed,
        audited=True,
        tag="queues",
    ),
    Route(
        "POST",
        f"{_QUEUE}/drain",
        drain,
        ("operate",),
        "Removes up to 1,000 jobs that have not started.",
        body=DrainRequest,
        answer=Removed,
        audited=True,
        tag="queues",
    ),
    Route(
        "POST",
        f"{_QUEUE}/obliterate",
        obliterate,
        ("administer",),
        "Pauses a queue and removes up to 1,000 of its jobs; the last call removes the queue.",
        body=ObliterateRequest,
        answer=Removed,
        audited=True,
        tag="queues",
    ),
    Route(
        "GET",
        f"{_QUEUE}/metrics",
        metrics,
        ("read",),
        "Counts per minute, oldest first.",
        query=MetricsQuery,
        answer=Minutes,
        tag="queues",
    ),
    Route(
        "GET",
        "/v1/workers",
        list_workers,
        ("read",),
        "Workers that run now, also over HTTP.",
        "filtered",
        query=WorkersQuery,
        answer=Workers,
        tag="queues",
    ),
    *(
        Route(
            "POST",
            f"/v1/workers/{{worker}}/{order}",
            _ordering(order),
            ("operate",),
            summary,
            "filtered",
            answer=Ordered,
            status=202,
            audited=True,
            tag="queues",
        )
        for order, summary in ORDERS.items()
    ),
)
