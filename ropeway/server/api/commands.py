"""The generic routes: any command of the store contract, and wake-ups. Remote stores need nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ...errors import InvalidOption
from ...job.codec import decode
from ...job.names import job_id, queue_name
from ...job.record import NewJob
from ...store.commands import Add, Claim, Command, Settle, Withdraw, verb_of
from ...store.wire import decode_command, encode_answer
from ..authentication import caller_of
from ..command_rules import RULES, is_audited
from ..listening import MOST_AT_ONCE, Heard, Listen, Wanted, What, any_wake
from ..routes import Call, Route
from ..waits import held, refuse_gone


async def do(call: Call) -> bytes:
    command, now = decode_command(call.body, call.form)
    rule = RULES[type(command)]
    if rule.right:
        call.need(*rule.right)
    needed = () if rule.needs is None else rule.needs(command)
    if needed:
        call.need(*needed)
    queues = [*rule.queues(command)]
    for queue in queues:
        queue_name(queue)
    call.reach(queues)
    if now is not None and not call.broker.test_clock:
        raise InvalidOption("now", "is for tests: this server goes by its own clock")
    if call.broker.schemas and isinstance(command, Add):
        call.broker.schemas.check((job.queue, job.name, _payload(job)) for jobs in command.bundles for job in jobs)
    call.broker.admission.check(rule.kind, own=1)
    answer = await _answer(call, command, now)
    if is_audited(rule, needed):
        caller = caller_of(call.scope)
        call.broker.audit.done(
            call.principal.name, caller.address, DO, {"verb": verb_of(command), "queue": ", ".join(queues)}
        )
    if rule.keeps is not None:
        answer = rule.keeps(answer, call.principal)
    return encode_answer(answer, call.form)


def _payload(job: NewJob) -> Any:
    try:
        return decode(job.data)
    except msgspec.DecodeError as wrong:
        raise InvalidOption("data", f"of job {job.id!r} is no JSON: {wrong}") from None


async def _answer(call: Call, command: Command[Any], now: int | None) -> Any:
    if isinstance(command, Settle) and command.then is not None and command.then.queue != command.queue:
        raise InvalidOption("then", "is a claim of another queue")
    if not isinstance(command, Claim) or not command.wait:
        return await call.store.do(command, now)
    waiting = replace(command, wait=min(command.wait, round(call.broker.limits.wait * 1000)))
    # The jobs of a client that has gone stay its own: it may come back and repeat the claim.
    ending: set[asyncio.Task[Any]] = set()

    def end() -> None:
        ending.add(asyncio.ensure_future(call.store.do(Withdraw(command.queue, command.worker, command.token))))

    answer, is_gone = await held(call, call.store.do(waiting, now), end)
    for task in ending:
        await task
    refuse_gone(is_gone)
    return answer


async def listen(call: Call) -> Heard:
    asked: Listen = call.body
    who, listenings = call.principal.name, call.broker.listenings
    for id in asked.close:
        listenings.drop(who, id)
    if len({wanted.id for wanted in asked.listeners}) < len(asked.listeners) or len(asked.listeners) > MOST_AT_ONCE:
        raise InvalidOption("listeners", f"must be {MOST_AT_ONCE:,} at most, each with an id of its own")
    whats = [_what(call, wanted) for wanted in asked.listeners]
    found = [
        listenings.get(call.store, who, wanted.id, what) for wanted, what in zip(asked.listeners, whats, strict=True)
    ]
    wait = min(asked.wait, call.broker.limits.wait)
    if (
        found
        and wait > 0
        and all(each.wakes == wanted.after for each, wanted in zip(found, asked.listeners, strict=True))
    ):
        end = asyncio.Event()
        # Counted also if the client has gone: it is told when it asks again.
        _, is_gone = await held(call, any_wake(found, wait, end), end.set)
        refuse_gone(is_gone)
    return Heard({wanted.id: each.wakes for each, wanted in zip(found, asked.listeners, strict=True)})


def _what(call: Call, wanted: Wanted) -> What:
    """Checks a listener before any of the request's is made."""
    job_id(wanted.id)
    if not wanted.queues:
        raise InvalidOption("queues", "are missing: name at least one")
    if wanted.worker is not None:
        call.need("work")
        if wanted.topic != "jobs" or len(wanted.queues) > 1:
            raise InvalidOption("worker", "is for listeners to the jobs of one queue")
    return wanted.topic, tuple(queue_name(queue) for queue in wanted.queues), wanted.worker


def _queues(body: Listen) -> set[str]:
    return {queue for wanted in body.listeners for queue in wanted.queues}


DO: Final = Route(
    "POST",
    "/v1/do",
    do,
    ("follow",),
    'Executes a command of the store contract: `[1, {"verb": ...}, null]`.',
    "named",
    bytes,
    answer=Any,
    kind="settle",
    tag="remote stores",
)
ROUTES: Final = (
    DO,
    Route(
        "POST",
        "/v1/listen",
        listen,
        ("follow",),
        "Waits for a wake-up of some listeners: something may have changed in their queues.",
        "named",
        Listen,
        answer=Heard,
        kind="work",
        queues=_queues,
        tag="remote stores",
    ),
)
