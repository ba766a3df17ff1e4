"""Orders of a queue to single workers: pause, resume and drain."""

from __future__ import annotations

from ..errors import WorkerNotFound
from .attached import Attached
from .queue_part import queue_part
from .workers import Order, WorkerInfo, order_worker, read_worker, read_workers


@queue_part
class WorkerOrders(Attached):
    """The part of `Queue` that lists its workers, and gives orders to them."""

    async def workers(self) -> list[WorkerInfo]:
        """The live workers of this queue."""
        return [worker for worker in await read_workers(self.store) if self.name in worker.queues]

    async def pause_worker(self, id: str) -> None:
        """Lets one worker of this queue claim no more, from any of its queues; it obeys within seconds.

        What it runs goes on. Raises `WorkerNotFound` if it does not run.
        """
        await self._order(id, "pause")

    async def resume_worker(self, id: str) -> None:
        """Ends the pause of a worker; also its draining, if it has not ended yet."""
        await self._order(id, "resume")

    async def drain_worker(self, id: str) -> None:
        """Lets a worker claim no more, finish the jobs that it has, and end."""
        await self._order(id, "drain")

    async def _order(self, id: str, order: Order) -> None:
        worker = await read_worker(self.store, id)
        if self.name not in worker.queues:
            raise WorkerNotFound(id)
        await order_worker(self.store, worker, order)
