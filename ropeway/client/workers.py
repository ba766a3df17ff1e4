"""Workers as others see them."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from ..job.instants import Instant
from ..store.contract import Store

WORKER_RECORDS: Final = "worker"


class WorkerInfo(msgspec.Struct, frozen=True):
    """What a worker last said of itself; it is forgotten when it says nothing for a while."""

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
    """By job name, the options that its task gives to jobs; programs that do not know the task add them without."""


async def read_workers(store: Store) -> list[WorkerInfo]:
    """The workers of all queues; one that another version wrote in another form is left out."""
    infos = []
    for record in await store.recall(WORKER_RECORDS):
        with suppress(msgspec.MsgspecError):
            infos.append(msgspec.json.decode(record.value, type=WorkerInfo))
    return infos
