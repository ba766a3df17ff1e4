"""The store on a cluster, where a command may concern keys on several nodes.

Adding, claiming and settling ask the queue's own node only. The list of queues, the records, the outboxes of other
queues, jobs that outcomes add to other queues, and parents and children there are in other slots: they are waited for
briefly, and what was not done is done later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar, Final, TypeVar

from msgspec.structs import replace

from ...errors import StoreUnavailable
from ...job.instants import Instant
from ...store import commands
from ...store.commands import Add, Claim, Settle, Tick, Update
from ...store.values import Added, Answer, Claimed, Settled, Ticked
from .additions import entries_of, pack_additions
from .child_updates import child_updates_over_slots, pack_child_updates
from .constants import ACCEPTED
from .executor import Executor
from .multi_slot import add_over_slots
from .outbox import Entry, clocks_soon, deliver, deliver_posted, forget_senders, hand_over
from .settling import settlement
from .store import RedisStore
from .subscriber import RedisListener
from .target import Target
from .updating import packed_updates
from .verbs import VERBS, Verb, Verbs, run

T = TypeVar("T")

BRIEFLY: Final = 1.0
"""Seconds that a tick waits for nodes that do not hold its queue."""


class ClusterExecutor(Executor):
    async def deliver(self, queue: str, posted: Sequence[bytes], now: Instant | None) -> None:
        await _briefly(_deliver(self, queue, now, posted))

    async def register(self, queues: Sequence[str]) -> None:
        new = [queue for queue in queues if queue not in self.registered]
        if new and await (await self.ready()).queue_list.note(new):
            self.registered.update(new)


async def add(on: Executor, command: Add, now: Instant | None) -> list[list[Added]]:
    queues = [*dict.fromkeys(job.queue for bundle in command.bundles for job in bundle)]
    if len(queues) < 2:
        return await run.add(on, command, now)
    await on.register(queues)
    answers, new = await add_over_slots(on.keys, on.call, command.bundles, now)
    await on.notice_new(new)
    return answers


async def settle(on: Executor, command: Settle, now: Instant | None) -> Settled:
    queues = {job.queue for outcome in command.outcomes for job in outcome.adds} - {command.queue}
    packed, ordered = settlement(command.outcomes, command.then, now)
    if queues:
        entries = entries_of(on.keys, command.queue, ordered, now)
        _, began = await asyncio.gather(on.register([*queues]), clocks_soon(on.keys, on.call, queues, now))
        answer = await run.settle_adding(on, packed, pack_additions(on.keys, command.queue, ordered, entries))
        # The outcomes are accepted, so nothing may raise now: what is not delivered is left to the next tick.
        await _briefly(_deliver_accepted(on, entries, answer[0], began, now))
    else:
        answer = await run.ask_to_settle(on, command.queue, packed, ordered)
    if answer[3]:
        await on.deliver(command.queue, answer[3], now)
    return run.settled_of(on, command, ordered, answer)


async def _deliver_accepted(
    on: Executor, entries: Sequence[tuple[int, Entry]], codes: bytes, began: dict[str, Instant], now: Instant | None
) -> None:
    accepted = [entry for number, entry in entries if codes[2 * number - 2 : 2 * number] == ACCEPTED.encode()]
    new: list[str] = []
    for entry in accepted:
        if entry.receivers <= began.keys():
            answers = await hand_over(on.keys, on.call, entry, began, now)
            new += [parcel.to for parcel, answer in zip(entry.parcels, answers, strict=True) if answer and answer[1]]
    await on.notice_new(new)


async def update(on: Executor, command: Update, now: Instant | None) -> list[Answer]:
    queue, updates = command.queue, command.updates
    queues = {job.queue for update in updates for job in update.adds} - {queue}
    if not queues:
        return await run.update(on, command, now)
    judged = await child_updates_over_slots(on.keys, on.call, queue, updates, now)
    await on.register([*queues])
    answers = await run.update_with(
        on, packed_updates(updates, now), pack_child_updates(on.keys, queue, updates, judged)
    )
    await _briefly(_deliver(on, queue, now))
    return answers


async def _deliver(on: Executor, queue: str, now: Instant | None, posted: Sequence[bytes] | None = None) -> None:
    """Delivers what is in the outbox of a queue, or only what is known to be there, and lists the queues it created."""
    if posted is None:
        new = await deliver(on.keys, on.call, queue, now)
    else:
        new = await deliver_posted(on.keys, on.call, queue, posted, now)
    await on.notice_new(new)


def then_deliver(verb: Verb) -> Verb:
    """The verb, and then the delivery of what it put into the outbox for other slots."""

    async def act(on: Executor, command: Any, now: Instant | None) -> Any:
        answer = await verb(on, command, now)
        await _briefly(_deliver(on, command.queue, now))
        return answer

    return act


OPERATIONS: Final = (
    commands.Cancel,
    commands.Retry,
    commands.Remove,
    commands.Clean,
    commands.Obliterate,
    commands.WriteSchedules,
)


async def tick(on: Executor, command: Tick, now: Instant | None) -> Ticked:
    queue = command.queue
    answer, records, _ = await asyncio.gather(
        run.tick_queue(on, queue, command.rules, now),
        _briefly(run.expire_records(on, now)),
        # Whoever added its first job may have ended before the list could be reached.
        on.register([queue]),
    )
    ticked = run.ticked(on, answer, records)
    if ticked.reset:
        on.registered.clear()
    *_, in_outbox, _ = answer
    if in_outbox:
        await _briefly(_deliver(on, queue, now))
    more = await _briefly(forget_senders(on.keys, on.call, queue, now))
    return replace(ticked, more=True) if more else ticked


class ClusterStore(RedisStore):
    verbs: ClassVar[Verbs] = {
        **VERBS,
        **{operation: then_deliver(VERBS[operation]) for operation in OPERATIONS},
        commands.Add: add,
        commands.Settle: settle,
        commands.Update: update,
        commands.Tick: tick,
    }

    def new_executor(self, target: Target) -> Executor:
        return ClusterExecutor(target)

    def domain_of(self, queue: str | None = None) -> str:
        """One failure domain for each queue: a slot can be unavailable while others work."""
        return self.url if queue is None else f"{self.url}#{queue}"

    def claim_listener(self, queue: str) -> RedisListener:
        # Without parked claims: no server of a cluster can tell whether somebody still hears a channel.
        return self.listener("jobs", [queue])

    async def claim_waiting(self, request: Claim) -> Claimed:
        return await self._claim_listeners.claim(request, self.do, self.claim_listener)


async def _briefly(call: Awaitable[T]) -> T | None:
    """The answer, or None if a node cannot be reached or does not answer within `BRIEFLY`."""
    try:
        async with asyncio.timeout(BRIEFLY):
            return await call
    except (StoreUnavailable, TimeoutError):
        return None
