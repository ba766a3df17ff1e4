"""Optional features of stores: each is None in a store that does not have it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ..job.instants import Instant
from ..job.record import NewJob
from .inspection import Inspectable, Migratable
from .transactions import SharesTransactions
from .values import Added


class BlockingAdds(Protocol):
    """Adds on the calling thread, for a store where an add waits at most for a disk or one round trip."""

    def add_blocking(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        """`Store.add` on a thread that has no event loop. Any number of threads may call it.

        In the main thread a signal can raise at any step of it, and must leave the store in order all the same.
        """
        ...


class Offers(NamedTuple):
    blocking_adds: BlockingAdds | None = None
    transactions: SharesTransactions | None = None
    inspection: Inspectable | None = None
    migration: Migratable | None = None
    side_by_side_from: int = sys.maxsize
    """Number of outcomes from which two parallel calls on one handle are faster than one."""
    maintenance: Callable[..., Any] | None = None
    """Replaces `worker.maintenance.thread.MaintenanceThread`, for a store whose clock is not the machine's."""
