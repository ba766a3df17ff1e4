"""Workers: what each runs now, since when, and what it may take; pausing and draining one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import Response

from ....client.found import FoundJob
from ....client.workers import Order, order_worker, read_worker
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
    orders = await summaries.orders()
    told = {
        worker.id: order.order
        for worker in workers
        if (order := orders.get(worker.id)) is not None and order.is_for(worker) and not order.is_done(worker)
    }
    limits = {
        name: (await summaries.of(visit.broker.queue(name))).settings.max_active
        for name in sorted({name for worker in workers for name in worker.queues if visit.is_listed(name)})[
            :MOST_QUEUES
        ]
    }
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
        told=told,
        limits=limits,
        may_tell=lambda worker: visit.may_operate and visit.principal.beyond(worker.queues) is None,
    )


def _telling(order: Order) -> Callable[[Visit], Awaitable[Response]]:
    async def tell(visit: Visit) -> Response:
        worker = await read_worker(visit.store, visit.params["worker"])
        visit.reach(worker.queues)
        await order_worker(visit.store, worker, order)
        visit.dashboard.summaries.forget()
        return visit.back("/workers", f"{worker.name} was told to {order}: it does within seconds.")

    return tell


ROUTES: Final = (
    page("GET", "/workers", list_workers, "Workers, and what they run now."),
    # Not as the paths of queues end: those who decide who may do what see this word.
    page("POST", "/workers/{worker}/pause-worker", _telling("pause"), "Lets a worker claim no more."),
    page("POST", "/workers/{worker}/resume-worker", _telling("resume"), "Ends the pause of a worker."),
    page("POST", "/workers/{worker}/drain-worker", _telling("drain"), "Lets a worker finish its jobs, and end."),
)
