"""Records of live workers, for `queue.workers()`, and the orders by which they are paused and drained from elsewhere.

An order is a record beside that of its worker, which the worker looks for every few seconds
(`worker/maintenance/presence.py`). The last one counts. It names the run and the queues of the worker that it is for:
a worker does not obey what was meant for an earlier run, or was written by somebody who may not know what it serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import msgspec

from ..errors import WorkerNotFound
from ..job.ids import new_token
from ..job.instants import Instant, Milliseconds
from ..store.contract import Store
from ..store.values import Record

WORKER_RECORDS: Final = "worker"
WORKER_ORDERS: Final = "worker-order"
ORDER_LASTS: Final[Milliseconds] = 60_000
"""A worker that has not seen an order by then cannot reach its store, or has ended."""

Order: TypeAlias = Literal["pause", "resume", "drain"]


class WorkerInfo(msgspec.Struct, frozen=True):
    """A worker's last report about itself; it expires if it is not renewed."""

    id: str
    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    handlers: dict[str, tuple[str, ...] | None]
    """By queue, the job names it takes; None takes every name."""
    concurrency: int
    running: int
    started_at: Instant
    paused: bool = False
    task_options: dict[str, dict[str, tuple[str, ...]]] = {}
    """By queue and job name, the options that a task gives its jobs; programs without the task add them without."""
    draining: bool = False
    """It claims no more, and ends when its jobs have."""

    def handles(self, queue: str, name: str) -> bool:
        """Whether it takes jobs of that name from that queue."""
        names = self.handlers.get(queue, ())
        return names is None or name in names


class WorkerOrder(msgspec.Struct, frozen=True):
    """A request to pause, resume or drain one worker, stored until that worker reads it."""

    id: str
    order: Order
    started_at: Instant
    """Of the run of the worker that it is for."""
    queues: tuple[str, ...]
    """Those of the worker."""

    def is_for(self, worker: WorkerInfo) -> bool:
        return (self.started_at, self.queues) == (worker.started_at, worker.queues)

    def is_done(self, worker: WorkerInfo) -> bool:
        """True if the worker's own record shows the effect of the order."""
        wanted = {"pause": (True, False), "resume": (False, False), "drain": (True, True)}[self.order]
        return (worker.paused, worker.draining) == wanted


async def read_worker(store: Store, id: str) -> WorkerInfo:
    """Raises `WorkerNotFound` if it does not run."""
    for record in await store.recall(WORKER_RECORDS, id):
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(record.value, type=WorkerInfo)
    raise WorkerNotFound(id)


async def order_worker(store: Store, worker: WorkerInfo, order: Order) -> WorkerOrder:
    """Tells a worker to pause, to go on, or to end when its jobs have; it obeys within seconds."""
    written = WorkerOrder(new_token(), order, worker.started_at, worker.queues)
    record = Record(WORKER_ORDERS, worker.id, msgspec.json.encode(written).decode())
    await store.remember(record, lasting=ORDER_LASTS)
    return written


async def read_orders(store: Store, id: str | None = None) -> dict[str, WorkerOrder]:
    """The last order to each worker, or to one, obeyed or not, by the worker's id."""
    orders = {}
    for record in await store.recall(WORKER_ORDERS, id):
        with suppress(msgspec.MsgspecError):
            orders[record.key] = msgspec.json.decode(record.value, type=WorkerOrder)
    return orders


async def write_worker(store: Store, info: WorkerInfo, lasting: Milliseconds) -> None:
    await store.remember(Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode()), lasting=lasting)


async def read_workers(store: Store) -> list[WorkerInfo]:
    """The workers of all queues; records in another version's format are left out."""
    infos = []
    for record in await store.recall(WORKER_RECORDS):
        with suppress(msgspec.MsgspecError):
            infos.append(msgspec.json.decode(record.value, type=WorkerInfo))
    return infos


async def known_queues(store: Store, workers: Sequence[WorkerInfo] | None = None) -> list[str]:
    """Every queue with jobs, settings or a worker, by name; `workers` saves reading them again."""
    alive = await read_workers(store) if workers is None else workers
    served = {name for worker in alive for name in worker.queues}
    return sorted({*await store.queues(), *served})


def handled_names(workers: Iterable[WorkerInfo], queue: str) -> list[str]:
    """The job names that some worker takes from a queue, without those that take every name."""
    return sorted({name for worker in workers for name in worker.handlers.get(queue) or ()})
