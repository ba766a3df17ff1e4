"""The store in a cluster, where some keys are on other nodes than the queue that a call is about.

Adding, claiming and settling ask the queue's own node only. The list of queues, the records and the outboxes of other
queues are in other slots: they are waited for briefly, and what was not done is done later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from ...errors import StoreUnavailable
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.contract import Listener
from ...store.values import Added, StallRules, Ticked, Topic
from .across import add_across
from .outbox import deliver, forget_senders
from .store import RedisStore
from .wake import RedisListener

T = TypeVar("T")

BRIEFLY: Final = 1.0
"""Seconds that a tick waits for nodes that do not hold its queue."""


class ClusterStore(RedisStore):
    def domain_of(self, queue: str) -> str:
        """Each queue by itself: one slot can be in trouble while others of its node are not."""
        return f"{self.url}#{queue}"

    async def _register(self, queues: Sequence[str]) -> None:
        new = [queue for queue in queues if queue not in self._registered]
        if new and await (await self._settled()).listing.note(new):
            self._registered.update(new)

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        queues = [*dict.fromkeys(job.queue for bundle in bundles for job in bundle)]
        if len(queues) < 2:
            return await super().add(bundles, now=now)
        await self._register(queues)
        answers, new = await add_across(self._keys, self._call, bundles, now)
        await self._notice_new(new)
        return answers

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        answer, records, _ = await asyncio.gather(
            self._tick_queue(queue, rules, now),
            _briefly(self._expire_records(now)),
            # Whoever added its first job may have ended before the list could be reached.
            self._register([queue]),
        )
        ticked = self._ticked(answer, records)
        if ticked.reset:
            self._registered.clear()
        *_, in_outbox = answer
        if in_outbox:
            await _briefly(deliver(self._keys, self._call, queue, now))
        more = await _briefly(forget_senders(self._keys, self._call, queue, now))
        return replace(ticked, more=True) if more else ticked

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        # Without standing claims: no server of a cluster can tell whether somebody still hears a channel.
        self._usable()
        return RedisListener(lambda: self._here().ear, self._channels(topic, queues), self._usable, self.url)


async def _briefly(call: Awaitable[T]) -> T | None:
    """None if its nodes cannot be reached, or do not answer soon."""
    try:
        async with asyncio.timeout(BRIEFLY):
            return await call
    except (StoreUnavailable, TimeoutError):
        return None
