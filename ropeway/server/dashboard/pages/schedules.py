"""Schedules: what makes jobs, when next, and what it made."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from ....client.found_schedules import found
from ....client.queue import Queue
from ....job.instants import Instant
from ....job.names import queue_name, schedule_id
from ..visits import Visit, page
from .jobs import MOST_QUEUES

PER_QUEUE: Final = 100
"""Schedules of a queue that are shown on a page."""
UPCOMING: Final = 3


async def list_schedules(visit: Visit) -> Response:
    name, after = visit.arg("queue"), visit.arg("after")
    known = await visit.queues()
    if name:
        visit.reach([queue_name(name)])
    chosen = [visit.broker.queue(name)] if name else known[:MOST_QUEUES]
    now = await visit.dashboard.summaries.now()
    rows: list[dict[str, Any]] = []
    cut: dict[str, str] = {}
    for queue in chosen:
        some, following = await _rows(queue, schedule_id(after) if name and after else None, now)
        rows += some
        if following is not None:
            cut[queue.name] = following
    return visit.page(
        "schedules.html",
        section="Schedules",
        title="Schedules",
        live=f"{visit.root}/live?{urlencode({'queue': name})}" if name else f"{visit.root}/live",
        rows=rows,
        cut=cut,
        queue=name,
        queues=[queue.name for queue in known],
    )


async def _rows(queue: Queue, after: str | None, now: Instant) -> tuple[list[dict[str, Any]], str | None]:
    """A page of a queue's schedules, and the `after` of the next."""
    stored = await queue.store.schedules(queue.name, after=after, limit=PER_QUEUE)
    rows: list[dict[str, Any]] = []
    for each in stored:
        read = found(queue, each)
        is_late = read.standing(now) == "late"
        row: dict[str, Any] = {"queue": queue.name, "id": each.id, "schedule": read.schedule, "is_late": is_late}
        if read.schedule is None:
            row["damage"] = f"It cannot be read: remove it, or make it again ({read.damage})"
        else:
            row["upcoming"] = read.schedule.upcoming(1 if is_late else UPCOMING)
        rows.append(row)
    return rows, stored[-1].id if len(stored) == PER_QUEUE else None


async def run(visit: Visit) -> Response:
    job = await visit.queue.schedules.run(visit.params["schedule"])
    return visit.back(f"/queues/{visit.queue.name}/jobs/{job.id}", "This job was made by the schedule.")


async def pause(visit: Visit) -> Response:
    await visit.queue.schedules.pause(visit.params["schedule"])
    return visit.back("/schedules", f"{visit.params['schedule']} is paused.")


async def resume(visit: Visit) -> Response:
    await visit.queue.schedules.resume(visit.params["schedule"])
    return visit.back("/schedules", f"{visit.params['schedule']} goes on.")


_SCHEDULE: Final = "/queues/{queue}/schedules/{schedule}"

ROUTES: Final = (
    page("GET", "/schedules", list_schedules, "All schedules."),
    page("POST", f"{_SCHEDULE}/run", run, "Makes a job now."),
    page("POST", f"{_SCHEDULE}/pause", pause, "Stops the ticks of a schedule."),
    page("POST", f"{_SCHEDULE}/resume", resume, "Ends the pause of a schedule."),
)
