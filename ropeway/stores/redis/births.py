"""Packs the children that jobs get while they run, for the script of `update`."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidOption
from ...store.values import JobUpdate
from .adding import JobPacker, links_of
from .additions import Additions
from .encoding import as_text, pack
from .ids import all_shortened
from .keys import Keys
from .outbox import Entry


def pack_births(
    keys: Keys, queue: str, updates: Sequence[JobUpdate], in_outbox: Sequence[Entry | None] = ()
) -> Additions:
    """Packs children; `in_outbox` has those for other slots, for each update. Without it there is one server."""
    packer = JobPacker(queue)
    packed = []
    for number, update in enumerate(updates):
        if update.children and update.token is None:
            raise InvalidOption("children", "need the token of the job that gets them")
        entry = in_outbox[number] if in_outbox else None
        posted = (entry.name.decode(), as_text(entry.stored)) if entry else (False, False)
        ids = all_shortened([job.id for job in update.adds])
        jobs = [packer.job(job, id) for job, id in zip(update.adds, ids, strict=True)]
        packed.append((links_of(update.children), jobs, *posted))
    arguments = pack((packer.names, len(packer.queues), packed)), packer.texts
    return Additions(packer.queues, tuple(map(keys.queue, packer.queues)), arguments)
