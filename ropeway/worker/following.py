"""Reading the events of queues for a worker's listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..client.queue import Queue
from .follower import Follower
from .maintenance.loop_watch import FINAL_CALL_TIMEOUT
from .reports import Reports
from .service import Services, cancelled, log


class Following:
    """The followers of a worker's queues, if it has listeners that hear of their events."""

    def __init__(
        self, queues: Sequence[Queue], reports: Reports, check: Callable[[asyncio.Future[None]], None]
    ) -> None:
        """`check` is called with the task that reads events when that has ended."""
        self._queues = queues
        self._reports = reports
        self._check = check
        self._followers: list[Follower] = []
        self._reading: asyncio.Task[None] | None = None

    @property
    def followers(self) -> list[Follower]:
        """Empty if nobody listens to queue events: reading them all costs store calls."""
        if not self._followers and self._reports.hears_queues:
            self._followers = [Follower(queue.store, queue.name, self._reports.happened) for queue in self._queues]
        return self._followers

    def start(self) -> None:
        """Starts reading, if there are listeners; may be called again."""
        if self._reading is None and self.followers:
            self._reading = asyncio.create_task(Services(self._followers).run(), name="ropeway-followers")
            self._reading.add_done_callback(self._check)

    async def stop(self, *, catches_up: bool) -> None:
        """Ends reading, if it `catches_up` after the events that this worker caused last, such as `drained`."""
        if self._reading is not None:
            await cancelled(self._reading)
            if catches_up:
                await self._catch_up()
        for follower in self._followers:
            follower.close()

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(FINAL_CALL_TIMEOUT):
                await asyncio.gather(*(follower.catch_up() for follower in self._followers))
        except Exception as error:  # noqa: BLE001 - no error at this point may keep a worker from its end
            log.warning("listeners may have missed the last events: %s", str(error) or type(error).__name__)
