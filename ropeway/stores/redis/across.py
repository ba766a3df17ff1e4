"""Bundles over several queues of a cluster, whose slots no script can touch together.

The first queue stores its jobs and, in the same step, puts those of the others into its outbox. They are delivered at
once; what a crash leaves there is delivered by a later tick. An add that is repeated finds its jobs, so delivering
twice is delivering once. A conflict is looked for beforehand in every slot; one that comes up in between is the one
thing that this cannot undo: the jobs it concerns are not stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from ...job.ids import new_token
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.values import Added
from .adding import Bundle, Bundles, Load, answers_of
from .keys import Keys

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Takes a verb, keys and arguments, as the store's own way to run a script."""

_parcels: Final = msgspec.msgpack.Decoder(list[tuple[str, bytes, bytes]]).decode


async def add_across(keys: Keys, call: Call, bundles: Bundles, now: Instant | None) -> list[list[Added]]:
    """Each queue's own bundles in one call, then those that concern several."""
    answers: list[list[Added]] = [[] for _ in bundles]
    by_queue: dict[str, list[int]] = {}
    for number, bundle in enumerate(bundles):
        queues = {job.queue for job in bundle}
        if len(queues) == 1:
            by_queue.setdefault(queues.pop(), []).append(number)

    async def add_to(numbers: Sequence[int]) -> None:
        own = [bundles[number] for number in numbers]
        load = Load(keys, own, now)
        letters, _ = await call("add", load.keys, *load.arguments)
        for number, answer in zip(numbers, answers_of(own, letters.decode()), strict=True):
            answers[number] = answer

    await asyncio.gather(*(add_to(numbers) for numbers in by_queue.values()))
    for number, bundle in enumerate(bundles):
        if bundle and not answers[number]:
            answers[number] = await _add_one(keys, call, bundle, now)
    return answers


async def _add_one(keys: Keys, call: Call, bundle: Bundle, now: Instant | None) -> list[Added]:
    parts: dict[str, list[NewJob]] = {}
    for job in bundle:
        parts.setdefault(job.queue, []).append(job)
    looks = [Load(keys, [part], now, looks=True) for part in parts.values()]
    seen = await asyncio.gather(*(call("add", look.keys, *look.arguments) for look in looks))
    letters = {queue: said.decode() for queue, (said, _) in zip(parts, seen, strict=True)}
    if any("x" in said for said in letters.values()):
        letters = {queue: _beside_a_conflict(parts[queue], said) for queue, said in letters.items()}
    else:
        letters = await _send(keys, call, parts, now)
    verdicts = {queue: iter(answers_of([parts[queue]], said)[0]) for queue, said in letters.items()}
    return [next(verdicts[job.queue]) for job in bundle]


def _beside_a_conflict(part: Sequence[NewJob], letters: str) -> str:
    """Nothing is stored, so what would repeat a job of its own bundle is not there either."""
    new = {job.id for job, letter in zip(part, letters, strict=True) if letter in "cs"}
    return "".join(
        "s" if letter != "x" and job.id in new else letter for job, letter in zip(part, letters, strict=True)
    )


async def _send(keys: Keys, call: Call, parts: dict[str, list[NewJob]], now: Instant | None) -> dict[str, str]:
    (home, own), *others = parts.items()
    loads = [(queue, Load(keys, [part], now)) for queue, part in others]
    token = new_token().encode()
    outbox = msgspec.msgpack.encode([(queue, *load.arguments) for queue, load in loads])
    first = Load(keys, [own], now)
    said, _ = await call("add", first.keys, *first.arguments, token, outbox)
    letters = {home: said.decode()}
    for queue, load in loads:
        said, _ = await call("add", load.keys, *load.arguments)
        letters[queue] = said.decode()
    await call("sent", (keys.queue(home),), token)
    return letters


async def deliver(keys: Keys, call: Call, queue: str) -> None:
    """Sends on what a crash left in the outbox of a queue."""
    left = await call("outbox", (keys.queue(queue),))
    for at in range(0, len(left), 2):
        for to, *arguments in _parcels(left[at + 1]):
            await call("add", (keys.queue(to),), *arguments)
        await call("sent", (keys.queue(queue),), left[at])
