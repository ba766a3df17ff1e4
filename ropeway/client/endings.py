"""Waiting for jobs to end: one reader of the event stream serves all waiters of a queue."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ..errors import JobCancelled, JobFailed, JobNotFound, JobRemoved, NoResult
from ..job.codec import Json, decode
from ..job.events import Entry
from ..job.record import JobRecord
from ..job.states import FINAL, State
from ..store.contract import Store
from ..store.values import Details
from .adds import own_copy
from .events import SAFETY_POLL

_ENDS: Final = frozenset((*FINAL, None))


class Ending(msgspec.Struct, frozen=True):
    """How a job ended: its result, or why there is none."""

    result: Json = None
    error: NoResult | JobNotFound | None = None

    def unwrap(self) -> Json:
        if self.error is not None:
            raise self.error
        return self.result


class Endings:
    """The waiters of one queue, on one event loop."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._waiters: dict[str, list[asyncio.Future[Ending]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[None] | None = None

    async def of(self, job_id: str) -> Ending:
        """Waits until the job has ended in any way; returns at once if it has ended or does not exist."""
        waiter: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(job_id, []).append(waiter)
        try:
            # The reader starts before the job is read, so an end in between is seen by one of them.
            await self._reading()
            seen = await self.look(job_id)
            return seen if isinstance(seen, Ending) else await waiter
        finally:
            self._drop(job_id, waiter)

    async def look(self, job_id: str) -> Ending | State:
        """How the job ended, or its state if it has not."""
        [record] = await self._store.get(self._queue, [job_id])
        return await self._remembered(job_id) if record is None else ending_of(record) or record.state

    async def _reading(self) -> None:
        if self._reader is None:
            self._begun = asyncio.get_running_loop().create_future()
            self._reader = asyncio.create_task(self._read(self._begun))
        assert self._begun is not None
        await asyncio.shield(self._begun)

    def _drop(self, job_id: str, waiter: asyncio.Future[Ending]) -> None:
        if not waiter.cancel() and not waiter.cancelled():
            # Retrieves an error that nobody waits for any more, which asyncio would log.
            waiter.exception()
        waiters = self._waiters.get(job_id, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiters.pop(job_id, None)
        if not self._waiters and self._reader is not None:
            self._reader.cancel()
            # The next waiter must not rely on a reader that is about to end.
            self._reader = None

    async def _read(self, begun: asyncio.Future[None]) -> None:
        listener = None
        try:
            listener = self._store.listen("events", [self._queue])
            cursor = (await self._store.events(self._queue, "now")).cursor
            begun.set_result(None)
            while True:
                page = await self._store.events(self._queue, cursor)
                cursor = page.cursor
                for stored in page.entries:
                    self._tell(stored.entry)
                if page.gap or (not page.entries and not await listener.wait(SAFETY_POLL)):
                    await self._look_for_all()
        except Exception as error:  # noqa: BLE001 - it is raised in every waiter; none may hang
            if self._begun is begun:
                self._fail(begun, error)
        finally:
            if listener is not None:
                listener.close()

    def _fail(self, begun: asyncio.Future[None], error: Exception) -> None:
        self._reader = None
        if begun.done():
            for waiter in self._all():
                waiter.set_exception(own_copy(error))
        else:
            begun.set_exception(error)

    def _tell(self, entry: Entry) -> None:
        if entry.to not in _ENDS:
            return
        for job_id, detail in entry.jobs:
            if job_id in self._waiters:
                ending = ending_in(self._queue, job_id, entry, detail)
                if ending is not None:
                    self._answer(job_id, ending)

    async def _look_for_all(self) -> None:
        """Reads every job that is waited for, in case an event was missed."""
        ids = list(self._waiters)
        for job_id, record in zip(ids, await self._store.get(self._queue, ids), strict=True):
            ending = await self._remembered(job_id) if record is None else ending_of(record)
            if ending is not None:
                self._answer(job_id, ending)

    def _answer(self, job_id: str, ending: Ending) -> None:
        for waiter in self._waiters.get(job_id, []):
            if not waiter.done():
                waiter.set_result(ending)

    def _all(self) -> list[asyncio.Future[Ending]]:
        return [waiter for waiters in self._waiters.values() for waiter in waiters if not waiter.done()]

    async def _remembered(self, job_id: str) -> Ending:
        """The end of a removed job, from the kept events."""
        ending, cursor, known = None, None, False
        while True:
            page = await self._store.events(self._queue, cursor)
            for stored in page.entries:
                entry, details = stored.entry, dict(stored.entry.jobs)
                if job_id in details:
                    known = True
                    if entry.to is not None or (entry.what == "remove" and ending is None):
                        # Notices change nothing, and a removal does not undo an earlier end.
                        ending = ending_in(self._queue, job_id, entry, details[job_id])
            if not page.entries:
                if ending is None:
                    gone = JobRemoved if known else JobNotFound
                    ending = Ending(error=gone(self._queue, job_id))
                return ending
            cursor = page.cursor


def ending_of(record: JobRecord) -> Ending | None:
    match record.state:
        case "completed":
            return Ending(None if record.result is None else decode(record.result))
        case "failed":
            return Ending(error=JobFailed(record.queue, record.id, record.reason or ""))
        case "cancelled":
            return Ending(error=JobCancelled(record.queue, record.id, record.reason))
    return None


def ending_in(queue: str, job_id: str, entry: Entry, detail: Details | None) -> Ending | None:
    """The end of a job according to an event entry; None if the job has not ended."""
    data = entry.data_of(detail)
    match entry.to:
        case "completed":
            return Ending(data.get("result"))
        case "failed":
            return Ending(error=JobFailed(queue, job_id, data.get("reason", "")))
        case "cancelled":
            return Ending(error=JobCancelled(queue, job_id, data.get("reason")))
    return Ending(error=JobRemoved(queue, job_id)) if entry.what == "remove" else None
