"""Workers: what each runs now, since when, and what it may take."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ....client.found import FoundJob
from ..visits import Visit, page
from .jobs import MOST_QUEUES

RUNNING: Final = 200
"""Running jobs that are read per queue."""


async def list_workers(visit: Visit) -> Response:
    summaries = visit.dashboard.summaries
    workers = sorted(
        (each for each in await summaries.workers() if any(visit.is_listed(name) for name in each.queues)),
        key=lambda worker: (worker.name, worker.started_at),
    )
    running: dict[str, list[FoundJob]] = {}
    others: list[FoundJob] = []
    known = {worker.id for worker in workers}
    is_cut = False
    for queue in (await visit.queues())[:MOST_QUEUES]:
        if (await summaries.of(queue)).counts["active"]:
            found = await queue.find("active", limit=RUNNING)
            is_cut |= found.next is not None
            for job in found:
                holder = job.snapshot.worker
                (running.setdefault(holder, []) if holder in known and holder else others).append(job)
    return visit.page(
        "workers.html",
        section="Workers",
        title="Workers",
        live=f"{visit.root}/live",
        workers=workers,
        running=running,
        others=others,
        is_cut=is_cut,
        most=RUNNING,
        shown=visit.is_listed,
    )


ROUTES: Final = (page("GET", "/workers", list_workers, "Workers, and what they run now."),)
