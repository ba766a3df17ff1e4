"""The queues of Ropeway itself, which workers serve beside their own (`companions.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from ..client.queue import Queue
from ..job.extras import Extras
from ..store.contract import Store
from .job import Job
from .options import Rules


class SystemQueue(NamedTuple):
    """A queue that any worker may serve, with slots of its own."""

    name: str
    concurrency: int
    make_handler: Callable[[Store], Callable[[Job], Awaitable[Any]]]
    """Makes the handler of its jobs on a store."""
    is_allowed: Callable[[Rules], bool]
    """True if the worker may serve it."""
    serves: Callable[[Queue, Rules], bool]
    """True if a worker of this queue serves it from its start."""
    is_fed_by: Callable[[Extras], bool]
    """True if a job with these extras will add jobs to it: the first one that a worker claims makes it serve it."""


SYSTEM_QUEUES: Final[tuple[SystemQueue, ...]] = ()
