"""Workers that run, and orders to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ...client.workers import Order, WorkerInfo, order_worker, read_worker, read_workers
from ..routes import Call, Reply, Route


class WorkersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: str | None = None


class Workers(msgspec.Struct, frozen=True):
    workers: list[WorkerInfo]


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


ORDERS: Final[dict[Order, str]] = {
    "pause": "Lets a worker claim no more; what it runs goes on.",
    "resume": "Ends the pause of a worker.",
    "drain": "Lets a worker claim no more, finish its jobs, and end.",
}

ROUTES: Final = (
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
