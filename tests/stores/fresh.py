"""A SQLite store whose single jobs go by the inbox."""

from __future__ import annotations

from typing import Any

import msgspec

from ropeway.job.instants import Instant
from ropeway.job.record import NewJob
from ropeway.store.commands import Add, Obliterate, Settle, Update, WriteSchedules
from ropeway.stores.sqlite import SQLiteStore


class FreshStore(SQLiteStore):
    """Says of an id that it never saw that it was made for its job, as clients do unless users bring their own."""

    seen: set[tuple[str, str]]

    async def do(self, command: Any, now: Instant | None = None) -> Any:
        match command:
            case Add(bundles=bundles):
                command = Add([[self._marked(job) for job in bundle] for bundle in bundles])
            case Settle(outcomes=parts) | Update(updates=parts) | WriteSchedules(writes=parts):
                # Ids that come with other commands were made for nobody else either.
                self.seen.update((job.queue, job.id) for part in parts for job in part.adds)
            case Obliterate(queue=queue, force=True):
                # Between the cases of a test, which begin as on a new store: ids of the last one are new in the next.
                self.seen.difference_update([key for key in self.seen if key[0] == queue])
        return await super().do(command, now)

    def _marked(self, job: NewJob) -> NewJob:
        key = job.queue, job.id
        is_fresh = key not in self.seen
        self.seen.add(key)
        return msgspec.structs.replace(job, is_fresh=is_fresh)


def new_fresh_class() -> type[FreshStore]:
    """For one place: its handles know of each other's ids."""
    return type("FreshStore", (FreshStore,), {"seen": set()})
