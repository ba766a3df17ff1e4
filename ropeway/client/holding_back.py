"""Settings of a queue for all workers: pauses, the limit of active jobs, retention."""

from __future__ import annotations

from ..job.durations import Duration
from ..job.names import job_name
from ..job.numbers import whole
from ..job.stages import stage_ages
from .looking import Looking
from .queue_part import queue_part


@queue_part
class HoldingBack(Looking):
    """The part of `Queue` that pauses, limits, and sets how long finished jobs are kept."""

    async def pause(self, name: str | None = None) -> None:
        """Stops claims, for the whole queue or for one job name; running jobs go on."""
        if name is None:
            await self.store.configure(self.name, pause=True)
        else:
            await self.store.configure(self.name, pause_names=[job_name(name)])

    async def resume(self, name: str | None = None) -> None:
        """Ends the pause of the queue, or of one job name: the two are independent."""
        if name is None:
            await self.store.configure(self.name, pause=False)
        else:
            await self.store.configure(self.name, resume_names=[job_name(name)])

    async def set_global_concurrency(self, limit: int | None) -> None:
        """Limits how many jobs of this queue are active at once, over all workers; None removes the limit."""
        value = 0 if limit is None else whole("limit", limit, 1)
        await self.store.configure(self.name, max_active=value)

    async def set_retention(self, *, stale_after: Duration | None = None, delete_after: Duration | None = None) -> None:
        """Sets after how long finished jobs of this queue become stale, and are deleted; None removes that stage.

        Any worker of the queue does that, in batches, with the events `stale` and `deleted`, and calls `on_stale` and
        `on_delete` if workers have them. Every finished job is deleted then: a job's own `remove_on_complete` and
        `remove_on_fail` can only remove it earlier.
        """
        stale, delete = stage_ages(stale_after, delete_after)
        await self.store.configure_stages(self.name, stale_after=stale, delete_after=delete)

    async def forget_callbacks(self) -> None:
        """Keeps no more stale and deleted jobs for `on_stale` and `on_delete`, until a worker that has them starts."""
        await self.store.configure_stages(self.name, callbacks=())

    async def is_maxed(self) -> bool:
        """True if as many jobs are active as the global concurrency allows."""
        limit = (await self.settings()).max_active
        return limit is not None and (await self.counts())["active"] >= limit
