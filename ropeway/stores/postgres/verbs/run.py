"""Commands of producers and workers: add, claim, settle, renew, update, tick."""

from __future__ import annotations

from ....job.events import EVENTS_KEPT
from ....job.instants import LAST_INSTANT, Instant
from ....store.answer_codes import answers_of
from ....store.commands import Add, Claim, Renew, Settle, Tick, Update, Withdraw
from ....store.values import HELD, Added, Answer, Claimed, Settled, Ticked
from ....store.waiting import end_wait, held_by
from .. import adding
from ..encoding import DEFAULTS, GIVEN_UP_FOR, claimed_of, request_of
from ..executor import Executor
from ..parameters import NULL, boolean, number, text, texts
from ..scheduling import schedules_of
from ..settling import Settlement
from ..updating import Updates


async def add(on: Executor, command: Add, now: Instant | None) -> list[list[Added]]:
    if not any(command.bundles):
        on.check()
        return [[] for _ in command.bundles]
    arguments = adding.arguments_of(command.bundles)
    [answer] = await on.call_and_notify("add", arguments.queues, now, *arguments.parameters())
    await on.fold_sometimes(arguments.queues)
    return adding.answers_of(command.bundles, answer)


async def claim(on: Executor, command: Claim, now: Instant | None) -> Claimed:
    start = on.scan_starts.parameters(command)
    instant, again_at, *jobs, passed = await on.call_and_notify(
        "claim", [command.queue], now, text(command.queue), *request_of(command), *start, is_repeat=command.repeat
    )
    claimed = claimed_of(command, instant, again_at, jobs)
    return on.scan_starts.note(command, claimed, passed, was_whole=start[2] is NULL)


async def withdraw(on: Executor, command: Withdraw, now: Instant | None) -> Claimed:
    end_wait(command.token)
    return await claim(on, held_by(command), now)


async def settle(on: Executor, command: Settle, now: Instant | None) -> Settled:
    then = command.then
    settlement = Settlement(command.outcomes)
    start = on.scan_starts.parameters(then)
    done, others, instant, again_at, *jobs, passed = await on.call_and_notify(
        "settle",
        [command.queue, *settlement.queues],
        now,
        text(command.queue),
        *settlement.parameters,
        *request_of(then),
        *start,
        *settlement.marks,
    )
    answers = settlement.answers(done, others)
    if then is None:
        return Settled(answers)
    claimed = claimed_of(then, instant, again_at, jobs)
    return Settled(answers, on.scan_starts.note(then, claimed, passed, was_whole=start[2] is NULL))


async def renew(on: Executor, command: Renew, now: Instant | None) -> list[Answer]:
    locks = command.locks
    ids, tokens = texts([held.id for held in locks]), texts([held.token for held in locks])
    lock = number(min(command.lock, LAST_INSTANT))
    [(letters,)] = await on.call("renew", text(command.queue), ids, tokens, lock, number(now))
    return [HELD] * len(locks) if letters is None else answers_of(letters)


async def update(on: Executor, command: Update, now: Instant | None) -> list[Answer]:
    updates = Updates(command.updates)
    [letters] = await on.call_and_notify(
        updates.function, [command.queue], now, text(command.queue), *updates.parameters
    )
    return [HELD] * len(command.updates) if letters is None else answers_of(updates.in_order(letters))


async def tick(on: Executor, command: Tick, now: Instant | None) -> Ticked:
    rules, ends = command.rules, dict(command.rules.ends)
    promoted, stalled, given_up, removed, next_at, more, at, expired, stale, *due = await on.call_and_notify(
        "tick",
        [command.queue],
        now,
        text(command.queue),
        number(rules.max_stalled_count),
        boolean(rules.on_stalled == "fail"),
        boolean(rules.counts_as_attempt),
        GIVEN_UP_FOR,
        texts(list(ends)),
        texts(list(ends.values())),
        DEFAULTS,
        number(EVENTS_KEPT),
    )
    return Ticked(
        promoted,
        stalled,
        given_up,
        removed,
        next_at,
        more=more,
        now=at,
        expired=expired,
        schedules=schedules_of(due) if due[0] else [],
        stale=stale,
    )
