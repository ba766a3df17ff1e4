"""Queues: counts, settings and what empties them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ...client.queue import Queue
from ...client.workers import WorkerInfo, read_workers
from ...errors import InvalidOption, QueueBusy
from ...job.durations import milliseconds
from ...job.names import job_name
from ...job.numbers import whole
from ...job.stages import Stages
from ...job.states import State, state_named
from ...store.values import BATCH
from ..job_fields import Span
from ..roles import RESERVED
from ..routes import Call, Route
from .jobs import clamped


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


async def list_queues(call: Call) -> QueueViews:
    asked: QueuesQuery = call.query
    workers = await read_workers(call.store)
    served = {name for worker in workers for name in worker.queues}
    names = sorted(name for name in {*await call.store.queues(), *served} if is_shown(call, name))
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


def is_shown(call: Call, queue: str) -> bool:
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


_QUEUE: Final = "/v1/queues/{queue}"


ROUTES: Final = (
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
)
