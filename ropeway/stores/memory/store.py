"""The memory store's face: every verb of the contract, each one step."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final, Self
from weakref import WeakSet

from ...errors import InvalidOption, StoreUnavailable
from ...job.codec import JsonText, decode
from ...job.events import PUBLISHED
from ...job.instants import Instant, Milliseconds
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.states import STATES, State
from ...showing import shown
from ...store.values import (
    Added,
    Answer,
    Change,
    Claimed,
    ClaimRequest,
    Cleaned,
    Counts,
    Edit,
    Entries,
    History,
    Lock,
    LogPage,
    Metric,
    Page,
    Query,
    Record,
    Remembered,
    Revoked,
    Settings,
    Settled,
    StallRules,
    Ticked,
    Topic,
)
from .door import Door
from .place import SHARED, Place
from .step import Step
from .verbs.add import add
from .verbs.change import change
from .verbs.claim import claim
from .verbs.clean import clean, obliterate
from .verbs.configure import configure
from .verbs.find import Search
from .verbs.hold import clear_log, renew, update
from .verbs.operate import cancel, promote, remove, retry
from .verbs.settle import settle
from .verbs.tick import tick
from .wake import MemoryListener

_URL: Final = re.compile(r"memory://([A-Za-z0-9][A-Za-z0-9._-]{0,127})?", re.IGNORECASE)
_TURN: Final = 0.001


class MemoryStore:
    """Jobs in this process: `memory://` is a new store each time, `memory://name` the same for all who say it.

    Either lives as long as one of its handles, siblings included, is open: the last `close` forgets the jobs.
    """

    def __init__(self, url: str, name: str | None = None, place: Place | None = None) -> None:
        self.url = url
        self._name = name
        self._door = Door(url)
        self._place: Place | None = place or (SHARED.enter(name, self._door) if name else Place())
        self._listeners: WeakSet[MemoryListener] = WeakSet()
        self._turned_at = time.monotonic()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        read = _URL.fullmatch(url)
        if read is None:
            raise InvalidOption(
                "url",
                f"cannot be {shown(url)}: use memory:// for a store of its own, or memory://name, "
                "of letters, digits, '.', '_' or '-', for one that is shared in this process",
            )
        if not create and not (read[1] and SHARED.has(read[1])):
            raise StoreUnavailable(
                url, "no such store lives in this process, and those of others cannot be seen from here"
            )
        return cls(url, read[1])

    async def open(self) -> None:
        self._usable()

    async def close(self) -> None:
        place, self._place = self._place, None
        if place is None or self._door.is_inherited:
            return
        self._door.is_open = False
        for listener in list(self._listeners):
            listener.close()
        if self._name:
            SHARED.leave(self._name, place, self._door)

    def sibling(self) -> Self:
        place = self._usable()
        return type(self)(self.url, self._name, None if self._name else place)

    def _usable(self) -> Place:
        self._door.check()
        assert self._place is not None, "a handle lets go of its place only when it is closed"
        return self._place

    async def _turn(self) -> Place:
        """What every verb begins with.

        Nothing here ever waits, so a task that only calls the store would keep all others of its loop from
        running: now and then it lets them.
        """
        place = self._usable()
        moment = time.monotonic()
        if moment - self._turned_at > _TURN:
            self._turned_at = moment
            await asyncio.sleep(0)
            place = self._usable()
        return place

    # Produce

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        with Step(await self._turn(), now) as step:
            return add(step, bundles)

    # Run

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claimed:
        with Step(await self._turn(), now) as step:
            return claim(step, request)

    async def settle(
        self,
        queue: str,
        outcomes: Sequence[Outcome],
        then: ClaimRequest | None = None,
        *,
        now: Instant | None = None,
    ) -> Settled:
        with Step(await self._turn(), now) as step:
            return settle(step, queue, outcomes, then)

    async def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return renew(step, queue, locks, lock)

    async def update(self, queue: str, changes: Sequence[Change], *, now: Instant | None = None) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return update(step, queue, changes)

    # Keep in order

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        with Step(await self._turn(), now) as step:
            return tick(step, queue, rules)

    # Operate

    async def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return cancel(step, queue, ids, reason)

    async def retry(
        self, queue: str, ids: Sequence[str], *, reset: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return retry(step, queue, ids, reset=reset)

    async def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return promote(step, queue, ids)

    async def change(self, queue: str, edits: Sequence[Edit], *, now: Instant | None = None) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return change(step, queue, edits)

    async def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        with Step(await self._turn(), now) as step:
            return remove(step, queue, ids, force=force)

    async def configure(
        self,
        queue: str,
        *,
        pause: bool | None = None,
        pause_names: Sequence[str] = (),
        resume_names: Sequence[str] = (),
        max_active: int | None = None,
        now: Instant | None = None,
    ) -> Settings:
        with Step(await self._turn(), now) as step:
            return configure(
                step,
                queue,
                pause=pause,
                pause_names=pause_names,
                resume_names=resume_names,
                max_active=max_active,
            )

    async def clear_log(self, queue: str, id: str, *, keep: int = 0) -> Answer:
        with Step(await self._turn(), None) as step:
            return clear_log(step, queue, id, keep)

    async def publish(self, queue: str, name: str, data: JsonText, *, now: Instant | None = None) -> None:
        with Step(await self._turn(), now) as step:
            step.book(queue).notice(PUBLISHED, {"name": name, "data": decode(data)})

    async def trim_events(self, queue: str, *, keep: int = 0) -> None:
        place = await self._turn()
        with place.lock:
            place.book(queue).stream.trim_to(keep)

    async def clean(
        self,
        queue: str,
        state: State,
        *,
        older_than: Milliseconds = 0,
        limit: int = 1_000,
        now: Instant | None = None,
    ) -> Cleaned:
        with Step(await self._turn(), now) as step:
            return clean(step, queue, state, older_than, limit)

    async def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Cleaned:
        with Step(await self._turn(), now) as step:
            return obliterate(step, queue, force=force)

    # Look

    async def get(self, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
        place = await self._turn()
        with place.lock:
            return [*map(place.book(queue).jobs.get, ids)]

    async def find(self, query: Query) -> Page:
        search = Search(query)
        while True:
            place = await self._turn()
            with place.lock:
                page = search.look(place.book(query.queue))
            if page is not None:
                return page

    async def count(self, queue: str) -> Counts:
        place = await self._turn()
        with place.lock:
            book = place.book(queue)
            return {state: len(book.shelf(state)) for state in STATES}

    async def metrics(self, queue: str, *, since: Instant = 0) -> list[Metric]:
        place = await self._turn()
        with place.lock:
            return place.book(queue).metrics.since(since)

    async def count_waiting(self, queue: str, priorities: Sequence[int]) -> list[int]:
        place = await self._turn()
        with place.lock:
            keys = place.book(queue).shelf("waiting").counted
            return keys.counts(priorities)

    async def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> LogPage | None:
        place = await self._turn()
        with place.lock:
            book = place.book(queue)
            return book.pasts.page(id, after, limit, newest_first=newest_first) if id in book.jobs else None

    async def history(self, queue: str, id: str) -> History | None:
        place = await self._turn()
        with place.lock:
            book = place.book(queue)
            return book.pasts.read(id) if id in book.jobs else None

    async def settings(self, queue: str) -> Settings:
        place = await self._turn()
        with place.lock:
            return place.book(queue).settings

    async def queues(self) -> list[str]:
        place = await self._turn()
        with place.lock:
            return sorted(name for name, book in place.books.items() if book.is_listed)

    async def clock(self) -> Instant:
        place = await self._turn()
        with place.lock:
            return place.clock.now()

    # Hear

    async def events(
        self, queue: str, after: str | None = None, *, inclusive: bool = False, limit: int = 1_000
    ) -> Entries:
        place = await self._turn()
        with place.lock:
            return place.book(queue).stream.read(after, inclusive=inclusive, limit=limit)

    async def revoked(self, queue: str, after: str | None = None) -> Revoked:
        place = await self._turn()
        with place.lock:
            return place.revoked.read(queue, after)

    def listen(self, topic: Topic, queues: Sequence[str]) -> MemoryListener:
        listener = MemoryListener(self._usable().hub, self._door, topic, queues)
        self._listeners.add(listener)
        return listener

    # Remember

    async def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Remembered:
        with Step(await self._turn(), now) as step:
            return step.place.records.remember(record, expect, lasting, step.now)

    async def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> list[Record]:
        with Step(await self._turn(), now) as step:
            return step.place.records.recall(kind, key, step.now)

    async def forget(self, kind: str, key: str) -> bool:
        with Step(await self._turn(), None) as step:
            return step.place.records.forget(kind, key, step.now)
