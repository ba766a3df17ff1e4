"""A store that passes every call on to another one: the base of what looks at calls, or spoils them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..job.codec import JsonText
from ..job.instants import Instant, Milliseconds
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.states import State
from ..store.contract import Listener, Store
from ..store.values import (
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
    Served,
    Settings,
    Settled,
    StallRules,
    Ticked,
    Topic,
)


class ListenerProxy:
    """Leaves no claims with the listener behind it, so that every claim is a call of the proxy's own."""

    def __init__(self, listener: Listener) -> None:
        self._inner = listener

    async def wait(self, timeout: float | None = None) -> bool:
        return await self._inner.wait(timeout)

    async def claim(self, request: ClaimRequest, timeout: float | None = None) -> Served | None:
        await self._inner.wait(timeout)
        return None

    def interrupt(self) -> None:
        self._inner.interrupt()

    def close(self) -> None:
        self._inner.close()


class StoreProxy:
    """Override the verbs that interest you."""

    def __init__(self, store: Store) -> None:
        self.inner = store
        self.url = store.url

    def now(self, given: Instant | None) -> Instant | None:
        """What time every verb is told; None leaves it to the store's own clock."""
        return given

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    def sibling(self) -> Self:
        return type(self)(self.inner.sibling())

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        return await self.inner.add(bundles, now=self.now(now))

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claimed:
        return await self.inner.claim(request, now=self.now(now))

    async def settle(
        self,
        queue: str,
        outcomes: Sequence[Outcome],
        then: ClaimRequest | None = None,
        *,
        now: Instant | None = None,
    ) -> Settled:
        return await self.inner.settle(queue, outcomes, then, now=self.now(now))

    async def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> list[Answer]:
        return await self.inner.renew(queue, locks, lock, now=self.now(now))

    async def update(self, queue: str, changes: Sequence[Change], *, now: Instant | None = None) -> list[Answer]:
        return await self.inner.update(queue, changes, now=self.now(now))

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        return await self.inner.tick(queue, rules, now=self.now(now))

    async def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> list[Answer]:
        return await self.inner.cancel(queue, ids, reason, now=self.now(now))

    async def retry(
        self, queue: str, ids: Sequence[str], *, reset: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        return await self.inner.retry(queue, ids, reset=reset, now=self.now(now))

    async def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> list[Answer]:
        return await self.inner.promote(queue, ids, now=self.now(now))

    async def change(self, queue: str, edits: Sequence[Edit], *, now: Instant | None = None) -> list[Answer]:
        return await self.inner.change(queue, edits, now=self.now(now))

    async def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        return await self.inner.remove(queue, ids, force=force, now=self.now(now))

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
        return await self.inner.configure(
            queue,
            pause=pause,
            pause_names=pause_names,
            resume_names=resume_names,
            max_active=max_active,
            now=self.now(now),
        )

    async def clear_log(self, queue: str, id: str, *, keep: int = 0) -> Answer:
        return await self.inner.clear_log(queue, id, keep=keep)

    async def publish(self, queue: str, name: str, data: JsonText, *, now: Instant | None = None) -> None:
        await self.inner.publish(queue, name, data, now=self.now(now))

    async def trim_events(self, queue: str, *, keep: int = 0) -> None:
        await self.inner.trim_events(queue, keep=keep)

    async def clean(
        self,
        queue: str,
        state: State,
        *,
        older_than: Milliseconds = 0,
        limit: int = 1_000,
        now: Instant | None = None,
    ) -> Cleaned:
        return await self.inner.clean(queue, state, older_than=older_than, limit=limit, now=self.now(now))

    async def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Cleaned:
        return await self.inner.obliterate(queue, force=force, now=self.now(now))

    async def get(self, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
        return await self.inner.get(queue, ids)

    async def find(self, query: Query) -> Page:
        return await self.inner.find(query)

    async def count(self, queue: str) -> Counts:
        return await self.inner.count(queue)

    async def metrics(self, queue: str, *, since: Instant = 0) -> list[Metric]:
        return await self.inner.metrics(queue, since=since)

    async def count_waiting(self, queue: str, priorities: Sequence[int]) -> list[int]:
        return await self.inner.count_waiting(queue, priorities)

    async def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> LogPage | None:
        return await self.inner.log(queue, id, after, limit=limit, newest_first=newest_first)

    async def history(self, queue: str, id: str) -> History | None:
        return await self.inner.history(queue, id)

    async def settings(self, queue: str) -> Settings:
        return await self.inner.settings(queue)

    async def queues(self) -> list[str]:
        return await self.inner.queues()

    async def clock(self) -> Instant:
        return await self.inner.clock()

    async def events(
        self, queue: str, after: str | None = None, *, inclusive: bool = False, limit: int = 1_000
    ) -> Entries:
        return await self.inner.events(queue, after, inclusive=inclusive, limit=limit)

    async def revoked(self, queue: str, after: str | None = None) -> Revoked:
        return await self.inner.revoked(queue, after)

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        return ListenerProxy(self.inner.listen(topic, queues))

    async def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Remembered:
        return await self.inner.remember(record, expect=expect, lasting=lasting, now=self.now(now))

    async def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> list[Record]:
        return await self.inner.recall(kind, key, now=self.now(now))

    async def forget(self, kind: str, key: str) -> bool:
        return await self.inner.forget(kind, key)
