"""Packs the children that jobs get while they run, for the script of `update`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...errors import InvalidOption
from ...job.flows import Parent
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.values import JobUpdate
from .adding import JobPacker, links_of
from .additions import Additions
from .encoding import as_text, pack
from .flow_slots import SENT, judge_flow, parcels_of, parts_of
from .ids import all_shortened
from .keys import Keys
from .outbox import Call, Entry


class ChildUpdate(NamedTuple):
    """The children of one update, as a script is to add them."""

    jobs: Sequence[NewJob]
    is_refused: bool = False
    entry: Entry | None = None
    """Those for other slots."""


def pack_child_updates(
    keys: Keys, queue: str, updates: Sequence[JobUpdate], given: Sequence[ChildUpdate] | None = None
) -> Additions:
    """Packs children; without `given` all are added by the script, on one server."""
    packer = JobPacker(queue)
    packed = []
    for update, own in zip(updates, given or [ChildUpdate(update.adds) for update in updates], strict=True):
        if update.children and update.token is None:
            raise InvalidOption("children", "need the token of the job that gets them")
        ids = all_shortened([job.id for job in own.jobs])
        jobs = [packer.job(job, id) for job, id in zip(own.jobs, ids, strict=True)]
        posted = (own.entry.name.decode(), as_text(own.entry.stored)) if own.entry else (False, False)
        packed.append((links_of(update.children, {}) if update.children else False, jobs, own.is_refused, *posted))
    arguments = pack((packer.names, len(packer.queues), packer.rare, packed)), packer.texts
    return Additions(packer.queues, tuple(map(keys.queue, packer.queues)), arguments)


async def child_updates_over_slots(
    keys: Keys, call: Call, queue: str, updates: Sequence[JobUpdate], now: Instant | None
) -> list[ChildUpdate]:
    """Judges children of several slots, as far as can be seen before anything is stored."""
    judged = []
    for update in updates:
        adopter = Parent(queue, update.id)
        answers = await judge_flow(keys, call, update.adds, now, adopter) if update.adds else []
        created = [job for job, answer in zip(update.adds, answers, strict=True) if answer.verdict in SENT]
        parts = parts_of(created, adopter)
        own = [part for part in parts[:1] if part.queue == queue]
        others = parcels_of(keys, parts[len(own) :], now)
        is_refused = any(answer.verdict == "conflict" for answer in answers)
        named = (update.id.encode(), (update.token or "").encode())
        judged.append(
            ChildUpdate(own[0].jobs if own else (), is_refused, Entry.of(queue, named, others) if others else None)
        )
    return judged
