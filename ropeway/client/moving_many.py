"""Moving many jobs by hand, in batches."""

from __future__ import annotations

from ..errors import InvalidOption
from ..job.choices import yes_or_no
from ..job.durations import Duration, milliseconds
from ..job.states import FINAL, state_named
from ..showing import shown
from ..store.values import Answer
from .attached import Attached
from .batches import clean_all, move_all, obliterate_all
from .queue_part import queue_part


@queue_part
class MovingMany(Attached):
    """The part of `Queue` that retries, promotes and removes all jobs of a state, or everything."""

    async def retry_all(
        self, state: str = "failed", *, older_than: Duration = 0, limit: int | None = None, reset: bool = False
    ) -> int:
        """Retries jobs of a state that finished at least `older_than` ago, oldest first, in batches.

        Jobs that finish while it runs are left out.
        """

        async def retry(ids: list[str]) -> list[Answer]:
            return await self.store.retry(self.name, ids, reset=reset)

        yes_or_no("reset", reset)
        named = state_named(state)
        if named not in FINAL:
            raise InvalidOption("state", f"cannot be {shown(state)}: retry is for jobs that are {' or '.join(FINAL)}")
        age = milliseconds(older_than, "older_than")
        last = await self.store.clock() - age
        return await move_all(
            self.store, self.name, named, limit, retry, lambda record: (record.finished_at or 0) <= last
        )

    async def promote_all(self, *, limit: int | None = None) -> int:
        """Makes every delayed job wait now, in batches, in the order of their due times."""

        async def promote(ids: list[str]) -> list[Answer]:
            return await self.store.promote(self.name, ids)

        started = await self.store.clock()
        return await move_all(
            self.store, self.name, "delayed", limit, promote, lambda record: record.created_at <= started
        )

    async def drain(self, *, delayed: bool = False) -> int:
        """Removes waiting jobs, and with `delayed` also delayed ones; running and finished jobs stay."""
        states = ("waiting", "delayed") if yes_or_no("delayed", delayed) else ("waiting",)
        return sum([len(await self.clean(0, state)) for state in states])

    async def clean(self, older_than: Duration = 0, state: str = "completed", *, limit: int | None = None) -> list[str]:
        """Removes jobs of a state that finished (or were added) at least `older_than` ago; returns their ids."""
        age = milliseconds(older_than, "older_than")
        return await clean_all(self.store, self.name, state_named(state), age, limit)

    async def obliterate(self, *, force: bool = False) -> int:
        """Removes the queue and everything in it. If it has active jobs it is only paused, unless `force` is set."""
        return await obliterate_all(self.store, self.name, force=yes_or_no("force", force))
