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

from msgspec.structs import replace

from ...errors import StoreUnavailable
from ...job.flows import Parent
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.answer_codes import ADDED
from ...store.values import Added, AddVerdict
from .adding import Bundle, Load, answers_of
from .encoding import pack
from .ids import all_shortened, shortened
from .keys import Keys
from .outbox import Call, Entry, Parcel, clocks, hand_over

T = TypeVar("T")

TRIES: Final = 5
"""How often a flow is judged again because somebody added jobs of its ids meanwhile."""
SENT: Final[dict[AddVerdict, str]] = {
    verdict: code for code, verdict in ADDED.items() if verdict in ("created", "deduplicated")
}
"""Verdicts with which jobs are sent to their queues, which announce those whose key is held; and the codes of these."""


class Part(NamedTuple):
    """Jobs of a flow that are stored in one step."""

    queue: str
    wave: int
    jobs: list[NewJob]


async def add_flow(keys: Keys, call: Call, bundle: Bundle, now: Instant | None, new: list[str]) -> list[Added]:
    """Adds one bundle; appends the queues that are new to `new`."""
    for _ in range(TRIES):
        began = await clocks(keys, call, {job.queue for job in bundle}, now)
        answers = await judge_flow(keys, call, bundle, now)
        judged: list[tuple[NewJob, AddVerdict]] = [
            (job, answer.verdict) for job, answer in zip(bundle, answers, strict=True)
        ]
        verdicts = {verdict for _, verdict in judged}
        if "conflict" in verdicts or verdicts.isdisjoint(SENT) or await _send(keys, call, judged, began, now, new):
            return answers
    raise StoreUnavailable(keys.queue(bundle[0].queue), "others keep adding the same jobs")


async def judge_flow(
    keys: Keys, call: Call, bundle: Bundle, now: Instant | None, adopter: Parent | None = None
) -> list[Added]:
    """What one server would answer.

    `adopter` is a job that is there, and gets the children that name it as their parent.
    """
    alone: dict[str, list[list[NewJob]]] = {}
    for job in bundle:
        if not job.parents:
            alone.setdefault(job.queue, [[]])[0].append(job)
        elif _has_key(job):
            # By itself, for its key only.
            alone.setdefault(job.queue, [[]]).append([replace(job, parents=(), children=())])
    looks = [Load(keys, parts, now, looks=True) for parts in alone.values()]
    (there, adopted), seen = await asyncio.gather(
        _look_for_members(keys, call, bundle, adopter),
        asyncio.gather(*(call("add", look.keys, *look.arguments) for look in looks)),
    )
    said: dict[Parent, list[Added]] = {}
    for parts, (codes, _, holders, _) in zip(alone.values(), seen, strict=True):
        for part, answers in zip(parts, answers_of(parts, codes.decode(), holders), strict=True):
            for job, answer in zip(part, answers, strict=True):
                said.setdefault(Parent(job.queue, job.id), []).append(answer)
    verdicts = _Verdicts(there, adopted, adopter)
    judged = [verdicts.of(job, said) for job in bundle]
    if any(answer.verdict == "conflict" for answer in judged):
        judged = [
            Added(job.id, "skipped")
            if answer.verdict != "conflict" and Parent(job.queue, job.id) not in there
            else answer
            for job, answer in zip(bundle, judged, strict=True)
        ]
    return judged


class _Verdicts:
    """Judges the jobs of a bundle one after the other."""

    def __init__(self, there: set[Parent], adopted: set[Parent], adopter: Parent | None) -> None:
        self._there = there
        self._adopted = adopted
        self._adopter = adopter
        self._added: set[Parent] = set()
        self._dropped: set[Parent] = set()
        """Jobs that are not added because of a dedupe key."""

    def of(self, job: NewJob, said: dict[Parent, list[Added]]) -> Added:
        """`said` has the answers of servers for jobs without parents, and for the keys of others."""
        own = Parent(job.queue, job.id)
        alone = said[own].pop(0) if own in said else None
        answer = Added(job.id, self._in_family(job, own)) if job.parents or alone is None else alone
        is_new = answer.verdict in ("created", "deduplicated")
        if is_new and job.parents and self._dropped.issuperset(job.parents):
            answer = Added(job.id, "skipped")
        elif is_new and alone is not None and alone.verdict == "deduplicated":
            answer = alone
        if is_new:
            self._added.add(own)
            if answer.verdict != "created":
                self._dropped.add(own)
        return answer

    def _in_family(self, job: NewJob, own: Parent) -> AddVerdict:
        """The verdict of a job with parents. One that was there before is found, with the children that it has."""
        are_new = {
            parent in self._added or (parent == self._adopter and own not in self._adopted) for parent in job.parents
        }
        if are_new == {False}:
            return "found"
        return "created" if are_new == {True} and own not in self._there | self._added else "conflict"


def _has_key(job: NewJob) -> bool:
    return job.extras is not None and job.extras.dedupe is not None


async def _look_for_members(
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
        calls.append(call("flow_members", (keys.queue(queue),), pack(arguments)))
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
    keys: Keys,
    call: Call,
    judged: Sequence[tuple[NewJob, AddVerdict]],
    began: dict[str, Instant],
    now: Instant | None,
    new: list[str],
) -> bool:
    """Stores and delivers; False if the root's queue is no longer as it was seen."""
    skipped = [Parent(job.queue, job.id) for job, verdict in judged if verdict == "skipped"]
    home, *others = parts_of([job for job, verdict in judged if verdict in SENT], *skipped)
    first = Load(keys, [home.jobs], now)
    entry = Entry.of(home.queue, first.arguments, parcels_of(keys, others, now))
    codes_of = {Parent(job.queue, job.id): SENT[verdict] for job, verdict in judged if verdict in SENT}
    expected = "".join(codes_of[Parent(job.queue, job.id)] for job in home.jobs)
    codes, is_new, *_ = await call("add", first.keys, *first.arguments, entry.name, entry.stored, expected)
    if codes.decode() != expected:
        return False
    answers = await hand_over(keys, call, entry, began, now)
    new.extend(home.queue for _ in is_new)
    new.extend(parcel.to for parcel, answer in zip(entry.parcels, answers, strict=True) if answer and answer[1])
    return True
