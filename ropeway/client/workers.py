"""Records of live workers, for `queue.workers()`."""

from __future__ import annotations

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
    handlers: tuple[str, ...] | None
    """The job names it takes; None takes every name."""
    concurrency: int
    running: int
    started_at: Instant
    paused: bool = False
    task_options: dict[str, tuple[str, ...]] = {}
    """By job name, the options of its tasks' jobs; programs that do not have the task add jobs without them."""


async def read_workers(store: Store) -> list[WorkerInfo]:
    """The workers of all queues; records in another version's format are left out."""
    infos = []
    for record in await store.recall(WORKER_RECORDS):
        with suppress(msgspec.MsgspecError):
            infos.append(msgspec.json.decode(record.value, type=WorkerInfo))
    return infos
