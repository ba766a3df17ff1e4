"""Reading the jobs of a queue: single ones, pages of them, counts and metrics."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from ..errors import InvalidOption, JobNotFound
from ..job.choices import one_of, yes_or_no
from ..job.flows import CHILD_STATES, ChildState
from ..job.instants import instant_of
from ..job.names import job_id, job_name, tag_name
from ..job.numbers import whole
from ..job.options import priority_of
from ..job.record import JobRecord
from ..job.states import STATES, state_named
from ..store.commands import Find
from ..store.values import BATCH, Children, Counts, History, LogPage, Metric, Settings
from .attached import Attached
from .flow_plan import MOST_NODES
from .flow_tree import DEEPEST, FlowNode, read_tree
from .found import FoundJob, JobPage, found_job
from .queue_part import queue_part
from .timings import MinuteTimings, read_timings
from .webhooks import delivery

if TYPE_CHECKING:
    from .queue import Queue

MOST_LINES: Final = 2**53
"""The largest line number that every store can hold."""
MOST_PRIORITIES: Final = 1_000
"""Most items of one call: a server executes it in one step, in which other callers wait."""


@queue_part
class Looking(Attached):
    """The part of `Queue` that reads jobs, numbers and settings, and changes nothing."""

    async def get(self, id: str) -> FoundJob | None:
        """The job with its snapshot; None if it does not exist."""
        [record] = await self.store.get(self.name, [job_id(id)])
        return None if record is None else found_job(self._whole, record)

    async def flow(self, id: str, *, depth: int = DEEPEST, limit: int = 1_000) -> FlowNode:
        """The job with its children, theirs, and so on, as they stand, across queues.

        At most `depth` levels below it, and `limit` jobs in all; what is left out is counted in `hidden`.
        """
        levels, most = whole("depth", depth, 0, DEEPEST), whole("limit", limit, 1, MOST_NODES)
        return await read_tree(self.store, await self._record(id), levels, most)

    async def children(self, id: str, *states: ChildState, after: str | None = None, limit: int = 1_000) -> Children:
        """A page of the job's children as it knows them, with their results; also of children that are gone."""
        wanted = tuple(one_of(*CHILD_STATES)("state", state) for state in states) or CHILD_STATES
        most = whole("limit", limit, 1, BATCH)
        page = await self.store.children(self.name, job_id(id), states=wanted, after=after, limit=most)
        if page is None:
            raise JobNotFound(self.name, id)
        return page

    async def _record(self, id: str) -> JobRecord:
        [record] = await self.store.get(self.name, [job_id(id)])
        if record is None:
            raise JobNotFound(self.name, id)
        return record

    async def find(
        self,
        *states: str,
        name: str | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        tag: str | None = None,
        stale: bool = False,
    ) -> JobPage:
        """A page of jobs in the given states (default all), state by state.

        Each state has its own order: waiting by claim order, delayed by due time, active by start, finished by end.
        With `stale`, only finished jobs that the queue's retention has marked as stale.
        """
        query = Find(
            self.name,
            tuple(state_named(state) for state in states) or STATES,
            None if name is None else job_name(name),
            whole("limit", limit, 1, BATCH),
            after,
            yes_or_no("newest_first", newest_first),
            None if tag is None else tag_name(tag),
            yes_or_no("stale", stale),
        )
        page = await self.store.find(query)
        return JobPage([found_job(self._whole, record) for record in page.jobs], page.next)

    async def counts(self) -> Counts:
        """The number of jobs in each state."""
        counts = await self.store.count(self.name)
        return {state: counts[state] for state in STATES}

    async def counts_by_priority(self, *priorities: int) -> dict[int, int]:
        """The number of waiting jobs of each given priority."""
        wanted = [*dict.fromkeys(priority_of(priority) for priority in priorities)]
        if not 0 < len(wanted) <= MOST_PRIORITIES:
            raise InvalidOption("priorities", f"cannot be {len(wanted)} of them: name 1 to {MOST_PRIORITIES:,}")
        return dict(zip(wanted, await self.store.count_waiting(self.name, wanted), strict=True))

    async def metrics(self, *, since: datetime | None = None) -> list[Metric]:
        """Counts per minute, oldest first; kept for two weeks."""
        return await self.store.metrics(self.name, since=0 if since is None else instant_of(since, "since"))

    async def timings(self, *, since: datetime | None = None) -> list[MinuteTimings]:
        """How long jobs waited and ran, as histograms per minute, oldest first; kept for two weeks.

        Workers write them every ten seconds. Those that are killed take the last ones with them.
        """
        return await read_timings(self.store, self.name, 0 if since is None else instant_of(since, "since"))

    async def history(self, id: str) -> History:
        """The job's failed attempts and log lines."""
        history = await self.store.history(self.name, job_id(id))
        if history is None:
            raise JobNotFound(self.name, id)
        return history

    async def logs(self, id: str, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the previous page's `next`, or its `newest` for later lines."""
        position = None if after is None else whole("after", after, 0, MOST_LINES)
        lines = whole("limit", limit, 1, BATCH)
        backwards = yes_or_no("newest_first", newest_first)
        page = await self.store.log(self.name, job_id(id), position, limit=lines, newest_first=backwards)
        if page is None:
            raise JobNotFound(self.name, id)
        return page

    async def delivery(self, id: str) -> FoundJob | None:
        """The delivery of the webhook about a job's last end: a job itself, which can be retried to send it again.

        None if nothing is reported, or retention has removed it. A job that was removed is not found either.
        """
        return await delivery(self._whole, await self._record(id))

    async def settings(self) -> Settings:
        """The queue's settings for all workers: paused or not, paused names, global concurrency."""
        return await self.store.settings(self.name)

    @property
    def _whole(self) -> Queue:
        # No other class has this one as its base.
        return cast("Queue", self)
