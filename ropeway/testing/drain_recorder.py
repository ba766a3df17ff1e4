"""Recording of a worker's attempts while a test drains its queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import HandlerError
from ..job.codec import Json
from ..job.states import OPEN, State
from ..worker.job import Job
from ..worker.listeners import WorkerEvent
from ..worker.worker import Worker
from .drained import Attempt, Drained, Ended

_ENDS: Final[dict[str, Ended]] = {
    "completed": "completed",
    "failed": "failed",
    "retrying": "retrying",
    "cancelled": "cancelled",
    "lock-lost": "lost",
}


class DrainRecorder:
    """Listens to a worker's events, and builds the result of `drain` from them."""

    def __init__(self, worker: Worker, started: Callable[[Job], None]) -> None:
        self._worker = worker
        self._started = started
        self._attempts: list[Attempt] = []
        self._stalled: list[tuple[str, str]] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        hear = {"active": self._on_start, "stalled": self._on_stalled}
        hear |= dict.fromkeys(_ENDS, self._on_end)
        hear |= dict.fromkeys(("waiting", "delayed", "waiting-children"), self._on_return)
        for name, listener in hear.items():
            self._worker.on(name, listener)
        try:
            yield
        finally:
            for name, listener in hear.items():
                self._worker.off(name, listener)

    async def read(self) -> Drained:
        left: dict[State, int] = dict.fromkeys(OPEN, 0)
        for queue in self._worker.queues:
            for state, count in (await queue.counts()).items():
                if state in left:
                    left[state] += count
        given_up = [job for stalled in dict.fromkeys(self._stalled) if (job := await self._given_up(*stalled))]
        return Drained([*self._attempts, *given_up], [id for _, id in self._stalled], left)

    async def _given_up(self, queue_name: str, id: str) -> Attempt | None:
        """A job that failed because it stalled too often, which no event of an attempt reports."""
        [queue] = [queue for queue in self._worker.queues if queue.name == queue_name]
        job = await queue.get(id)
        if job is None or job.snapshot.state != "failed":
            return None
        if any(attempt.id == id and attempt.ended == "failed" for attempt in self._attempts):
            return None
        return Attempt(
            queue=queue_name,
            id=id,
            name=job.name,
            data=job.data,
            attempt=job.snapshot.attempts_made,
            ended="failed",
            reason=job.snapshot.reason,
        )

    def _on_start(self, event: WorkerEvent) -> None:
        assert event.job is not None
        self._started(event.job)

    def _on_end(self, event: WorkerEvent) -> None:
        self._write(event, _ENDS[event.name])

    def _on_return(self, event: WorkerEvent) -> None:
        # After a failure it was recorded as `retrying`.
        if "reason" not in event.data:
            self._write(event, "postponed")

    def _on_stalled(self, event: WorkerEvent) -> None:
        self._stalled += [(event.data["queue"], id) for id in event.data["ids"]]

    def _write(self, event: WorkerEvent, ended: Ended) -> None:
        job, data = event.job, event.data
        assert job is not None
        self._attempts.append(
            Attempt(
                queue=job.queue.name,
                id=job.id,
                name=job.name,
                data=_readable(job),
                attempt=job.attempt,
                ended=ended,
                result=data.get("result"),
                reason=data.get("reason"),
                error=data.get("error"),
                delay=data.get("delay", 0) / 1000,
            )
        )


def _readable(job: Job) -> Json:
    try:
        return job.data
    except HandlerError:
        return None
