"""Packs the jobs that outcomes add, for the script of `settle`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...job.instants import Instant
from ...job.outcomes import Outcome
from ...job.record import NewJob
from .adding import JobPacker, Load
from .encoding import as_text, pack
from .ids import all_shortened
from .keys import Keys
from .outbox import Entry, Parcel


class Additions(NamedTuple):
    """Queues, keys and further arguments of a `settle` that adds jobs."""

    queues: Sequence[str]
    """The queue of the outcomes first."""
    keys: tuple[str, ...]
    arguments: tuple[bytes, bytes]


def pack_additions(
    keys: Keys,
    queue: str,
    outcomes: Sequence[Outcome],
    in_outbox: Sequence[tuple[int, Entry]] = (),
) -> Additions:
    """Packs jobs; `in_outbox` has those for other slots, by number of outcome. Without it there is one server."""
    owned: list[tuple[int, NewJob]] = [
        (number, job)
        for number, outcome in enumerate(outcomes, 1)
        for job in outcome.adds
        if not in_outbox or job.queue == queue
    ]
    packer = JobPacker(queue)
    ids = all_shortened([job.id for _, job in owned])
    jobs = [packer.job(job, id) for (_, job), id in zip(owned, ids, strict=True)]
    owners = [number for number, _ in owned]
    parcels = [(number, entry.name.decode(), as_text(entry.stored)) for number, entry in in_outbox]
    packed = pack((packer.names, jobs, owners, len(packer.queues), parcels, packer.rare))
    return Additions(packer.queues, tuple(map(keys.queue, packer.queues)), (packed, packer.texts))


def entries_of(keys: Keys, queue: str, outcomes: Sequence[Outcome], now: Instant | None) -> list[tuple[int, Entry]]:
    """Outbox entries for jobs of other queues: one for each outcome that has any, with its number (from 1)."""
    entries: list[tuple[int, Entry]] = []
    for number, outcome in enumerate(outcomes, 1):
        by_queue: dict[str, list[list[NewJob]]] = {}
        for job in outcome.adds:
            if job.queue != queue:
                by_queue.setdefault(job.queue, []).append([job])
        parcels = [Parcel(to, *Load(keys, bundles, now).arguments) for to, bundles in by_queue.items()]
        if parcels:
            own = outcome.id.encode(), outcome.token.encode()
            entries.append((number, Entry.of(queue, own, parcels)))
    return entries
