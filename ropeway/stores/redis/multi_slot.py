"""Adds bundles whose queues are in several slots of a cluster, which no script can write to at once.

The script of the first queue stores its jobs and puts those of the others into its outbox (see `outbox.py`). All slots
are searched for conflicts beforehand; one that arises between the two steps cannot be undone, and the jobs it concerns
are not stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...job.instants import Instant
from ...job.record import NewJob
from ...store.values import Added
from .adding import Bundle, Bundles, Load, answers_of
from .flow_slots import add_flow
from .keys import Keys
from .outbox import Call, Entry, Parcel, clocks, hand_over


async def add_over_slots(
    keys: Keys, call: Call, bundles: Bundles, now: Instant | None
) -> tuple[list[list[Added]], list[str]]:
    """Adds the bundles of one queue in one call each, then those of several; also returns the queues that are new."""
    answers: list[list[Added]] = [[] for _ in bundles]
    by_queue: dict[str, list[int]] = {}
    new: list[str] = []
    for number, bundle in enumerate(bundles):
        queues = {job.queue for job in bundle}
        if len(queues) == 1:
            by_queue.setdefault(queues.pop(), []).append(number)

    async def add_to(queue: str, numbers: Sequence[int]) -> None:
        own = [bundles[number] for number in numbers]
        load = Load(keys, own, now)
        codes, is_new, holders, _ = await call("add", load.keys, *load.arguments)
        new.extend(queue for _ in is_new)
        for number, answer in zip(numbers, answers_of(own, codes.decode(), holders), strict=True):
            answers[number] = answer

    await asyncio.gather(*(add_to(queue, numbers) for queue, numbers in by_queue.items()))
    for number, bundle in enumerate(bundles):
        if bundle and not answers[number]:
            add_one = add_flow if any(job.parents for job in bundle) else _add_one
            answers[number] = await add_one(keys, call, bundle, now, new)
    return answers, new


async def _add_one(keys: Keys, call: Call, bundle: Bundle, now: Instant | None, new: list[str]) -> list[Added]:
    parts: dict[str, list[NewJob]] = {}
    for job in bundle:
        parts.setdefault(job.queue, []).append(job)
    looks = [Load(keys, [part], now, looks=True) for part in parts.values()]
    began, seen = await asyncio.gather(
        clocks(keys, call, parts, now),
        asyncio.gather(*(call("add", look.keys, *look.arguments) for look in looks)),
    )
    codes = {queue: said.decode() for queue, (said, *_) in zip(parts, seen, strict=True)}
    holders = {queue: there for queue, (_, _, there, _) in zip(parts, seen, strict=True)}
    if any("x" in said for said in codes.values()):
        codes = {queue: _beside_a_conflict(parts[queue], said) for queue, said in codes.items()}
    else:
        for queue, (said, there) in (await _send(keys, call, parts, began, now, new)).items():
            codes[queue], holders[queue] = said, there
    verdicts = {queue: iter(answers_of([parts[queue]], said, holders[queue])[0]) for queue, said in codes.items()}
    return [next(verdicts[job.queue]) for job in bundle]


def _beside_a_conflict(part: Sequence[NewJob], codes: str) -> str:
    """The codes of one queue when another has a conflict: nothing is stored, so new jobs are skipped."""
    new = {job.id for job, code in zip(part, codes, strict=True) if code in "csd"}
    return "".join("s" if code != "x" and job.id in new else code for job, code in zip(part, codes, strict=True))


async def _send(
    keys: Keys,
    call: Call,
    parts: dict[str, list[NewJob]],
    began: dict[str, Instant],
    now: Instant | None,
    new: list[str],
) -> dict[str, tuple[str, list[bytes]]]:
    """Stores and delivers; returns codes and holders of keys of each queue, unless another process delivered first."""
    (home, own), *others = parts.items()
    first = Load(keys, [own], now)
    parcels = [Parcel(queue, *Load(keys, [part], now).arguments) for queue, part in others]
    entry = Entry.of(home, first.arguments, parcels)
    codes, is_new, holders, posted = await call("add", first.keys, *first.arguments, entry.name, entry.stored)
    said = [[codes, is_new, posted, holders], *await hand_over(keys, call, entry, began, now)]
    answered = {queue: each for queue, each in zip(parts, said, strict=True) if each is not None}
    new.extend(queue for queue, (_, is_new, *_) in answered.items() if is_new)
    return {queue: (codes.decode(), holders) for queue, (codes, _, _, holders) in answered.items()}
