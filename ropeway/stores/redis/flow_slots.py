"""Adds flows whose queues are in several slots of a cluster.

All slots are asked first. The script of the root's queue stores what belongs there, if it still finds things as they
were seen, and puts the rest into its outbox. Parcels are ordered, so that a job is stored after all its parents: the
end of a child always finds its parent, unless that was removed. If the id of a child turns out to exist on delivery,
its parents are told that it failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from ...errors import StoreUnavailable
from ...job.flows import Parent
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.values import Added
from .adding import Bundle, Load, answers_of
from .encoding import pack
from .ids import all_shortened, shortened
from .keys import Keys
from .outbox import Call, Entry, Parcel, clocks, hand_over

T = TypeVar("T")

TRIES: Final = 5
"""How often a flow is judged again because somebody added jobs of its ids meanwhile."""


class Part(NamedTuple):
    """Jobs of a flow that are stored in one step."""

    queue: str
    wave: int
    jobs: list[NewJob]


async def add_flow(keys: Keys, call: Call, bundle: Bundle, now: Instant | None, new: list[str]) -> list[Added]:
    """Adds one bundle; appends the queues that are new to `new`."""
    for _ in range(TRIES):
        began = await clocks(keys, call, {job.queue for job in bundle}, now)
        codes = await judge_flow(keys, call, bundle, now)
        created = [job for job, code in zip(bundle, codes, strict=True) if code == "c"]
        if "x" in codes or not created or await _send(keys, call, created, began, now, new):
            return answers_of([bundle], codes)[0]
    raise StoreUnavailable(keys.queue(bundle[0].queue), "others keep adding the same jobs")


async def judge_flow(keys: Keys, call: Call, bundle: Bundle, now: Instant | None, adopter: Parent | None = None) -> str:
    """A code for each job, as one server would answer it.

    `adopter` is a job that is there, and gets the children that name it as their parent.
    """
    alone: dict[str, list[NewJob]] = {}
    for job in bundle:
        if not job.parents:
            alone.setdefault(job.queue, []).append(job)
    looks = [Load(keys, [part], now, looks=True) for part in alone.values()]
    (there, adopted), seen = await asyncio.gather(
        _look_for_kin(keys, call, bundle, adopter),
        asyncio.gather(*(call("add", look.keys, *look.arguments) for look in looks)),
    )
    said = {queue: iter(codes.decode()) for queue, (codes, _) in zip(alone, seen, strict=True)}
    added: set[Parent] = set()
    codes = []
    for job in bundle:
        own = Parent(job.queue, job.id)
        if job.parents:
            # A parent that was there before is found as it is, with the children that it has, which may be gone by now.
            are_new = {parent in added or (parent == adopter and own not in adopted) for parent in job.parents}
            is_there = own in there or own in added
            code = "f" if are_new == {False} else "c" if are_new == {True} and not is_there else "x"
        else:
            code = next(said[job.queue])
        if code == "c":
            added.add(own)
        codes.append(code)
    if "x" in codes:
        codes = [
            "s" if code != "x" and Parent(job.queue, job.id) not in there else code
            for job, code in zip(bundle, codes, strict=True)
        ]
    return "".join(codes)


async def _look_for_kin(
    keys: Keys, call: Call, bundle: Bundle, adopter: Parent | None
) -> tuple[set[Parent], set[Parent]]:
    """Which of these jobs are there, and which of them the adopter has as children."""
    asked: dict[str, list[Parent]] = {}
    for job in bundle:
        asked.setdefault(job.queue, []).append(Parent(job.queue, job.id))
    links: list[Parent] = []
    if adopter is not None:
        links = [Parent(job.queue, job.id) for job in bundle if adopter in job.parents]
        asked.setdefault(adopter.queue, [])
    calls = []
    for queue, jobs in asked.items():
        own = links if adopter is not None and queue == adopter.queue else []
        arguments = (
            all_shortened([job.id for job in jobs]),
            shortened(adopter.id) if adopter is not None else "",
            [f"{child.queue}/{shortened(child.id)}" for child in own],
        )
        calls.append(call("kin", (keys.queue(queue),), pack(arguments)))
    there: set[Parent] = set()
    adopted: set[Parent] = set()
    for jobs, (are_there, has) in zip(asked.values(), await asyncio.gather(*calls), strict=True):
        there.update(_those(jobs, are_there))
        if has:
            adopted.update(_those(links, has))
    return there, adopted


def _those(items: Iterable[T], flags: Sequence[int]) -> list[T]:
    return [item for item, flag in zip(items, flags, strict=True) if flag]


def parts_of(jobs: Iterable[NewJob], *known: Parent) -> list[Part]:
    """Jobs in the order in which they must be stored; `known` are parents that are there."""
    waves = dict.fromkeys(known, -1)
    parts: list[Part] = []
    left = [*jobs]
    while left:
        # Parents come first in a bundle, so all those of the first job are placed.
        queue = left[0].queue
        taken: list[NewJob] = []
        others: list[NewJob] = []
        placed: set[Parent] = set()
        wave = 0
        for job in left:
            if job.queue == queue and all(parent in waves or parent in placed for parent in job.parents):
                taken.append(job)
                placed.add(Parent(job.queue, job.id))
                wave = max(wave, *(waves.get(parent, -1) + 1 for parent in job.parents), 0)
            else:
                others.append(job)
        if not taken:
            raise LookupError(f"a parent of {left[0].id!r} is not in its flow")
        waves |= dict.fromkeys(placed, wave)
        parts.append(Part(queue, wave, taken))
        left = others
    return parts


def parcels_of(keys: Keys, parts: Iterable[Part], now: Instant | None) -> list[Parcel]:
    """Each job by itself: one whose id exists holds up no others."""
    return [Parcel(queue, *Load(keys, [[job] for job in jobs], now).arguments, wave) for queue, wave, jobs in parts]


async def _send(
    keys: Keys, call: Call, jobs: Sequence[NewJob], began: dict[str, Instant], now: Instant | None, new: list[str]
) -> bool:
    """Stores and delivers; False if the root's queue is no longer as it was seen."""
    home, *others = parts_of(jobs)
    first = Load(keys, [home.jobs], now)
    entry = Entry.of(home.queue, first.arguments, parcels_of(keys, others, now))
    expected = "c" * len(home.jobs)
    codes, is_new = await call("add", first.keys, *first.arguments, entry.name, entry.stored, expected)
    if codes.decode() != expected:
        return False
    answers = await hand_over(keys, call, entry, began, now)
    new.extend(home.queue for _ in is_new)
    new.extend(parcel.to for parcel, answer in zip(entry.parcels, answers, strict=True) if answer and answer[1])
    return True
