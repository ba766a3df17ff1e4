"""`JobHandle`: a stored job, as its producer uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import msgspec

from ..errors import JobNotFound, ResultTimeout, StoreError, UnexpectedResult
from ..job.codec import Json
from ..job.durations import Duration, milliseconds
from ..job.flows import ChildState
from ..job.states import State
from ..store.values import History, LogPage
from .flow_tree import failures, results
from .name_hints import ON_JOBS, Guided
from .results import R_co
from .snapshot import Snapshot
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .queue import Queue


T = TypeVar("T")


class JobHandle(Guided, Generic[R_co]):
    """A handle on a stored job. It holds no lock and no connection, and costs nothing to create.

    A `JobHandle[str]` has a text result; without a type the result is any JSON.
    """

    __slots__ = ("_data", "_read_result", "_snapshot", "created", "deduplicated", "id", "name", "queue")

    _foreign_names = ON_JOBS
    _twin = "job.sync.{}(...)"

    def __init__(
        self,
        queue: Queue,
        id: str,
        name: str,
        data: Json,
        *,
        created: bool = False,
        deduplicated: bool = False,
        snapshot: Snapshot | None = None,
        read_result: Callable[[Json], R_co] | None = None,
    ) -> None:
        self.queue = queue
        self.id = id
        self.name = name
        self._data = data
        self._read_result = read_result
        self.created = created
        """True if the add stored a new job, False if it found an existing one."""
        self.deduplicated = deduplicated
        """True if the add found this job because it holds the same dedupe key."""
        self._snapshot = snapshot

    def __repr__(self) -> str:
        found = " (deduplicated: the job that holds the key)" if self.deduplicated else ""
        return f"<{type(self).__name__} {self.name!r} {self.id} in {self.queue.name!r}{found}>"

    @property
    def data(self) -> Json:
        """The job's data as stored: for a task, an object of its arguments.

        If an add found the job (`created` is False), it is what the add was given, until `refresh`.
        """
        return self._data

    @property
    def snapshot(self) -> Snapshot | None:
        """The job as of its last read; None after an add until `refresh`."""
        return self._snapshot

    def typed(self, read_result: Callable[[Json], T]) -> JobHandle[T]:
        """The same job, with another type of result."""
        return JobHandle(
            self.queue,
            self.id,
            self.name,
            self._data,
            created=self.created,
            deduplicated=self.deduplicated,
            snapshot=self._snapshot,
            read_result=read_result,
        )

    @property
    def sync(self) -> SyncJobHandle[R_co]:
        """The same job for code without an event loop: `job.sync.result()` blocks until it is answered."""
        return SyncJobHandle(self)

    async def refresh(self) -> Snapshot:
        """Reads the job again."""
        job = await self.queue.get(self.id)
        if job is None:
            raise JobNotFound(self.queue.name, self.id)
        self._data, self._snapshot = job.data, job.snapshot
        return job.snapshot

    async def state(self) -> State:
        """The current state, read from the store."""
        return (await self.refresh()).state

    async def result(self, timeout: Duration | None = None) -> R_co:
        """Waits until the job is completed, and returns its result; for a task, in its return type.

        Raises `JobFailed`, `JobCancelled` or `JobRemoved` when there will never be a result, and `ResultTimeout`
        after `timeout`; the job itself goes on then.
        """
        return self._typed(await self._ended(timeout))

    async def _ended(self, timeout: Duration | None) -> Json:
        limit = None if timeout is None else milliseconds(timeout, "timeout") / 1000
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                ending = await self.queue.endings.of(self.id)
        except TimeoutError:
            if not deadline.expired():
                raise
            assert limit is not None
            # A last look at the job itself: its event may have been missed, or the time too short to read any.
            last_look = await self.queue.endings.look(self.id)
            if isinstance(last_look, str):
                unserved = await self._unserved() if last_look == "waiting" else None
                raise ResultTimeout(self.queue.name, self.id, limit, last_look, unserved) from None
            ending = last_look
        return ending.unwrap()

    async def _unserved(self) -> str | None:
        """The store's URL if no worker is known to run on the queue."""
        with suppress(StoreError):
            if not await self.queue.workers():
                return self.queue.store.url
        return None

    def _typed(self, result: Json) -> R_co:
        if self._read_result is None:
            return cast(R_co, result)
        try:
            return self._read_result(result)
        except msgspec.ValidationError as wrong:
            raise UnexpectedResult(self.queue.name, self.id, str(wrong)) from None

    async def history(self) -> History:
        """The job's failed attempts and log lines."""
        return await self.queue.history(self.id)

    async def logs(self, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the previous page's `next`, or its `newest` for later lines."""
        return await self.queue.logs(self.id, after=after, limit=limit, newest_first=newest_first)

    async def clear_logs(self, *, keep: int = 0) -> None:
        """Drops all but the newest `keep` log lines of the job, in any state."""
        await self.queue.clear_logs(self.id, keep=keep)

    async def children_results(self) -> dict[str, Json]:
        """The results of its completed children, by their ids."""
        return await results(self.queue.store, self.queue.name, self.id)

    async def children_failures(self) -> dict[str, str]:
        """The reasons of its failed and cancelled children, by their ids."""
        return await failures(self.queue.store, self.queue.name, self.id)

    async def children_counts(self) -> dict[ChildState, int]:
        """How many of its children are pending, completed, failed and cancelled."""
        return (await self.queue.children(self.id, limit=1)).counts

    async def cancel(self, reason: str | None = None, *, children: bool = False) -> bool:
        """Cancels the job if it is not finished; False if it was cancelled before.

        With `children`, those below it that are not finished are cancelled too.
        """
        return await self.queue.cancel(self.id, reason, children=children)

    async def retry(self, *, reset: bool = False, from_phase: str | None = None) -> None:
        """Makes the finished job run once more; `reset` restores all its attempts.

        Results of steps and completed phases stay; `from_phase` begins again at that phase of a pipeline. A completed
        pipeline runs its last phase again.
        """
        await self.queue.retry(self.id, reset=reset, from_phase=from_phase)

    async def promote(self) -> None:
        """Makes the delayed job wait now."""
        await self.queue.promote(self.id)

    async def signal(self, name: str, data: Json = None) -> None:
        """Answers a `job.wait_for(name)` of the job, also one that comes later; a second signal replaces the first."""
        await self.queue.signal(self.id, name, data)

    async def remove(self, *, force: bool = False, children: bool = True) -> None:
        """Removes the job, and those below it in its flow unless `children` is False; active ones only with `force`.

        Looks first: if one of them is active, nothing is removed. One that a worker takes in that moment stays, and
        `InvalidMove` says so.
        """
        await self.queue.remove(self.id, force=force, children=children)

    async def change(
        self,
        *,
        priority: int | None = None,
        lifo: bool | None = None,
        delay: Duration | datetime | None = None,
        data: Json = msgspec.UNSET,
    ) -> None:
        """Changes the job if it is not finished: all given fields, or nothing.

        Priority and lifo while it waits or is delayed, delay (counted from now) while it is delayed.
        """
        await self.queue.change(self.id, priority=priority, lifo=lifo, delay=delay, data=data)
        if data is not msgspec.UNSET:
            self._data = data
