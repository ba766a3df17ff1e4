"""Records of live workers, for `queue.workers()`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from ..job.instants import Instant
from ..store.contract import Store

WORKER_RECORDS: Final = "worker"


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

    def handles(self, queue: str, name: str) -> bool:
        """Whether it takes jobs of that name from that queue."""
        names = self.handlers.get(queue, ())
        return names is None or name in names


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
