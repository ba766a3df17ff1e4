"""Workers as others see them."""

from __future__ import annotations

from typing import Final

import msgspec

from ..job.instants import Instant

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
