"""Jobs that were not started in time fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ...job.failure import EXPIRED_REASON
from ...job.instants import Instant
from ...job.options import readable_options
from ...job.states import State
from ...store.values import BATCH
from .deadlines import correct_first_deadline
from .decoding import decoder
from .ending import Ends
from .finishing import Ending, keep_of_failed
from .statements import statements
from .transaction import QueueRow, Transaction

_SQL: Final = statements("deadlines")


class Late(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job that was not started in time."""

    seq: int
    id: str
    state: State
    options: str
    has: int

    def ending(self) -> Ending:
        keep = keep_of_failed(readable_options(self.options))
        return Ending(self.seq, self.id, self.state, keep, {"reason": EXPIRED_REASON}, EXPIRED_REASON, has=self.has)


_late: Final[Callable[[bytes], list[Late]]] = decoder(list[Late])


def expire_due(tx: Transaction, row: QueueRow, now: Instant, ends: Ends | None = None) -> int:
    """Fails at most `BATCH` jobs whose deadline has passed; with `ends`, the caller concludes."""
    if row.first_deadline is None or row.first_deadline > now:
        return 0
    late = _late(tx.get(_SQL["due"], {"queue": row.id, "now": now, "limit": BATCH}))
    if late:
        ended = ends or Ends(tx, row, now)
        ended.end("expire", [job.ending() for job in late])
        if ends is None:
            ended.conclude()
    correct_first_deadline(tx, row)
    return len(late)
