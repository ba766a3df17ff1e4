"""Commands of producers and workers: add, claim, settle, renew, update and tick."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ....job.ids import new_token
from ....job.instants import LAST_INSTANT, Instant
from ....job.outcomes import Outcome
from ....store.commands import Add, Claim, Renew, Settle, Tick, Update, Withdraw
from ....store.values import BATCH, Added, Answer, Claimed, Settled, StallRules, Ticked
from ....store.waiting import end_wait, held_by
from .. import adding
from ..additions import Additions, pack_additions
from ..child_updates import pack_child_updates
from ..encoding import DEFAULTS, answers_of, claimed_of, given, pack, request_of
from ..executor import Executor
from ..failures import reading
from ..ids import shortened, texts_of
from ..schedules import schedules_of
from ..scripts import SCRIPTS
from ..settling import in_order, settlement
from ..updating import packed_together, packed_updates

ADD_ONE = SCRIPTS["add_one"]


async def add(on: Executor, command: Add, now: Instant | None) -> list[list[Added]]:
    if job := adding.alone(command.bundles):
        # Written out here: for a lone job each further step is felt.
        own = on.on_loop()
        if not own.closes_with_loop:
            await own.close_with_loop()
        if job.queue not in on.registered:
            await on.register([job.queue])
        keys = (on.keys.queue(job.queue),)
        answer = await own.commands.run(ADD_ONE, keys, *adding.arguments_of(job, now))
        if answer == b"c":
            return [[Added(job.id, "created")]]
        queues = [job.queue]
    else:
        load = adding.Load(on.keys, command.bundles, now, is_direct=True)
        queues = load.queues
        if not queues:
            on.check()
            return [[] for _ in command.bundles]
        await on.register(queues)
        answer = await on.call("add", load.keys, *load.arguments)
    codes, new, holders, posted = answer
    await on.notice_new([queues[number - 1] for number in new])
    if posted:
        await on.deliver(queues[0], posted, now)
    return adding.answers_of(command.bundles, codes.decode(), holders)


async def claim(on: Executor, command: Claim, now: Instant | None) -> Claimed:
    answer, posted = _split(await on.run("claim", command.queue, given(now), request_of(command)))
    if posted:
        await on.deliver(command.queue, posted, now)
    with reading(on.target.url):
        return claimed_of(command, answer)


def _split(answer: list[Any]) -> tuple[list[Any], list[bytes]]:
    """What a claim is given, and what went into the outbox because jobs expired."""
    return (answer[:5], answer[5]) if len(answer) > 5 else (answer, [])


async def withdraw(on: Executor, command: Withdraw, _: Instant | None) -> Claimed:
    end_wait(command.token)
    answer = await on.run("withdraw", command.queue, command.token)
    with reading(on.target.url):
        return claimed_of(held_by(command), answer)


async def settle(on: Executor, command: Settle, now: Instant | None) -> Settled:
    packed, ordered = settlement(command.outcomes, command.then, now)
    return settled_of(on, command, ordered, await ask_to_settle(on, command.queue, packed, ordered))


async def ask_to_settle(on: Executor, queue: str, settlement: bytes, ordered: Sequence[Outcome]) -> list[Any]:
    """Runs `settle`; all queues that get jobs are in reach of it."""
    if any(outcome.adds for outcome in ordered):
        return await settle_adding(on, settlement, pack_additions(on.keys, queue, ordered))
    answer: list[Any] = await on.run_packed(queue, "settle", settlement)
    return answer


async def settle_adding(on: Executor, settlement: bytes, adds: Additions) -> list[Any]:
    """Runs `settle` with jobs to add, and lists their queues."""
    await on.register(adds.queues)
    answer: list[Any] = await on.call("settle", adds.keys, settlement, *adds.arguments)
    await on.notice_new([adds.queues[int(number) - 1] for number in answer[2]])
    return answer


def settled_of(on: Executor, command: Settle, ordered: Sequence[Outcome], answer: list[Any]) -> Settled:
    codes, claimed, *_ = answer
    answers = in_order(command.outcomes, ordered, answers_of(codes))
    with reading(on.target.url):
        return Settled(answers, claimed_of(command.then, claimed) if command.then else None)


async def renew(on: Executor, command: Renew, now: Instant | None) -> list[Answer]:
    held = [(shortened(lock.id), lock.token) for lock in command.locks]
    return answers_of(await on.run("renew", command.queue, given(now), held, min(command.lock, LAST_INSTANT)))


async def update(on: Executor, command: Update, now: Instant | None) -> list[Answer]:
    if together := packed_together(command.updates, now):
        return answers_of(await on.run_packed(command.queue, "update_many", together))
    packed = packed_updates(command.updates, now)
    if any(update.children for update in command.updates):
        return await update_with(on, packed, pack_child_updates(on.keys, command.queue, command.updates))
    codes, _ = await on.run_packed(command.queue, "update", packed)
    return answers_of(codes)


async def update_with(on: Executor, updates: bytes, children: Additions) -> list[Answer]:
    """Runs `update` with children that jobs get, and lists their queues."""
    await on.register(children.queues)
    codes, new = await on.call("update", children.keys, updates, *children.arguments)
    await on.notice_new([children.queues[int(number) - 1] for number in new])
    return answers_of(codes)


async def tick(on: Executor, command: Tick, now: Instant | None) -> Ticked:
    ticking = tick_queue(on, command.queue, command.rules, now)
    return ticked(on, *await asyncio.gather(ticking, expire_records(on, now)))


async def tick_queue(on: Executor, queue: str, rules: StallRules, now: Instant | None) -> list[Any]:
    answer: list[Any] = await on.run(
        "tick",
        queue,
        given(now),
        rules.max_stalled_count,
        rules.on_stalled == "fail",
        rules.counts_as_attempt,
        dict(rules.ends),
        DEFAULTS,
    )
    return answer


async def expire_records(on: Executor, now: Instant | None) -> tuple[int, bytes]:
    """Removes records that have expired; returns their number, and the id of the store (`Keys.life`)."""
    keys = on.keys.expiring, on.keys.kinds, on.keys.life
    expired, life = await on.call("expire_records", keys, pack((given(now), new_token())))
    return expired, life


def ticked(on: Executor, answer: list[Any], records: tuple[int, bytes] | None) -> Ticked:
    expired, life = records or (0, on.life)
    known, on.life = on.life, life
    promoted, stalled, given_up, removed, next_at, more, at, late, due, _, stale = answer
    return Ticked(
        promoted,
        texts_of(stalled),
        texts_of(given_up),
        removed,
        next_at,
        more=bool(more) or expired == BATCH,
        now=at,
        reset=known not in (None, life),
        expired=late,
        schedules=schedules_of(due),
        stale=stale,
    )
