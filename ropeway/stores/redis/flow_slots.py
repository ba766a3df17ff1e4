"""Adds flows whose queues are in several slots of a cluster.

All slots are asked first. The script of the root's queue stores what belongs there, if it still finds things as they
were seen, and puts the rest into its outbox. Parcels are ordered, so that a job is stored after all its parents: the
end of a child always finds its parent, unless that was removed. If the id of a child turns out to exist on delivery,
its parents are told that it failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
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


async def judge_flow(keys: Keys, call: Call, bundle: Bundle, now: Instant | None) -> str:
    """A code for each job, as one server would answer it."""
    alone: dict[str, list[NewJob]] = {}
    for job in bundle:
        if not job.parents:
            alone.setdefault(job.queue, []).append(job)
    looks = [Load(keys, [part], now, looks=True) for part in alone.values()]
    (there, links), seen = await asyncio.gather(
        _look_for_kin(keys, call, bundle),
        asyncio.gather(*(call("add", look.keys, *look.arguments) for look in looks)),
    )
    said = {queue: iter(codes.decode()) for queue, (codes, _) in zip(alone, seen, strict=True)}
    added: set[Parent] = set()
    codes = []
    for job in bundle:
        own = Parent(job.queue, job.id)
        code = _judge_child(job, own, added, there, links) if job.parents else next(said[job.queue])
        if code == "c":
            added.add(own)
        codes.append(code)
    if "x" in codes:
        codes = [
            "s" if code != "x" and Parent(job.queue, job.id) not in there else code
            for job, code in zip(bundle, codes, strict=True)
        ]
    return "".join(codes)


def _judge_child(
    job: NewJob, own: Parent, added: set[Parent], there: set[Parent], links: set[tuple[Parent, Parent]]
) -> str:
    are_new = {parent in added or (parent, own) not in links for parent in job.parents}
    if are_new == {False}:
        return "f"
    return "c" if are_new == {True} and own not in there and own not in added else "x"


async def _look_for_kin(keys: Keys, call: Call, bundle: Bundle) -> tuple[set[Parent], set[tuple[Parent, Parent]]]:
    """Which of these jobs are there, and which of them their parents have as children."""
    ids: dict[str, list[NewJob]] = {}
    links: dict[str, list[tuple[Parent, Parent]]] = {}
    for job in bundle:
        ids.setdefault(job.queue, []).append(job)
        for parent in job.parents:
            links.setdefault(parent.queue, []).append((parent, Parent(job.queue, job.id)))
    queues = [*dict.fromkeys([*ids, *links])]
    said = await asyncio.gather(*(_ask_for_kin(keys, call, queue, ids, links) for queue in queues))
    there = {
        Parent(job.queue, job.id)
        for queue, (own, _) in zip(queues, said, strict=True)
        for job in _those(ids.get(queue, ()), own)
    }
    known = {link for queue, (_, has) in zip(queues, said, strict=True) for link in _those(links.get(queue, ()), has)}
    return there, known


async def _ask_for_kin(
    keys: Keys,
    call: Call,
    queue: str,
    jobs: Mapping[str, Sequence[NewJob]],
    links: Mapping[str, Sequence[tuple[Parent, Parent]]],
) -> tuple[list[int], list[int]]:
    own = links.get(queue, ())
    arguments = (
        all_shortened([job.id for job in jobs.get(queue, ())]),
        all_shortened([parent.id for parent, _ in own]),
        [f"{child.queue}/{shortened(child.id)}" for _, child in own],
    )
    there, has = await call("kin", (keys.queue(queue),), pack(arguments))
    return there, has


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
