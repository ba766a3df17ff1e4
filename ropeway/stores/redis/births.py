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
from .flow_slots import judge_flow, parcels_of, parts_of
from .ids import all_shortened
from .keys import Keys
from .outbox import Call, Entry


class Birth(NamedTuple):
    """The children of one update, as a script is to add them."""

    jobs: Sequence[NewJob]
    is_refused: bool = False
    entry: Entry | None = None
    """Those for other slots."""


def pack_births(
    keys: Keys, queue: str, updates: Sequence[JobUpdate], births: Sequence[Birth] | None = None
) -> Additions:
    """Packs children; without `births` all are added by the script, on one server."""
    packer = JobPacker(queue)
    packed = []
    for update, birth in zip(updates, births or [Birth(update.adds) for update in updates], strict=True):
        if update.children and update.token is None:
            raise InvalidOption("children", "need the token of the job that gets them")
        ids = all_shortened([job.id for job in birth.jobs])
        jobs = [packer.job(job, id) for job, id in zip(birth.jobs, ids, strict=True)]
        posted = (birth.entry.name.decode(), as_text(birth.entry.stored)) if birth.entry else (False, False)
        packed.append((links_of(update.children), jobs, birth.is_refused, *posted))
    arguments = pack((packer.names, len(packer.queues), packer.rare, packed)), packer.texts
    return Additions(packer.queues, tuple(map(keys.queue, packer.queues)), arguments)


async def births_over_slots(
    keys: Keys, call: Call, queue: str, updates: Sequence[JobUpdate], now: Instant | None
) -> list[Birth]:
    """Judges children of several slots, as far as can be seen before anything is stored."""
    births = []
    for update in updates:
        adopter = Parent(queue, update.id)
        codes = await judge_flow(keys, call, update.adds, now, adopter) if update.adds else ""
        created = [job for job, code in zip(update.adds, codes, strict=True) if code == "c"]
        parts = parts_of(created, adopter)
        own = [part for part in parts[:1] if part.queue == queue]
        others = parcels_of(keys, parts[len(own) :], now)
        named = (update.id.encode(), (update.token or "").encode())
        births.append(
            Birth(own[0].jobs if own else (), "x" in codes, Entry.of(queue, named, others) if others else None)
        )
    return births
