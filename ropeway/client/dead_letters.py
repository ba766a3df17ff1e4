"""Sending dead letters back to the queues they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..job.dead_letters import is_dead_letter
from ..job.extras import Extras
from ..job.record import JobRecord, NewJob
from ..job.states import State
from ..store.commands import Find
from ..store.contract import Store
from ..store.values import BATCH

if TYPE_CHECKING:
    from .queue import Queue

UNREAD: Final[tuple[State, ...]] = ("waiting", "delayed", "failed")
"""States of letters that nobody has dealt with."""


async def redrive(queue: Queue, ids: Sequence[str], limit: int) -> int:
    """Sends letters back: those with the ids, or all that nobody has dealt with; returns how many.

    The job first, then the letter goes: what ends between the two is found when it is called again. Letters of jobs
    that fail again meanwhile stay.
    """
    sent, after = 0, None
    started = await queue.store.clock()
    while sent < limit:
        if ids:
            letters = [
                record for record in await queue.store.get(queue.name, [*dict.fromkeys(ids)]) if record is not None
            ]
        else:
            page = await queue.store.find(Find(queue.name, UNREAD, limit=min(limit - sent, BATCH), after=after))
            letters, after = page.jobs, page.next
        for letter in letters:
            if sent < limit and letter.created_at <= started and await _send_back(queue.store, letter):
                sent += 1
        if ids or after is None:
            break
    return sent


async def _send_back(store: Store, letter: JobRecord) -> bool:
    """False if it is no dead letter, somebody works on it, or its job came or went meanwhile: then it stays."""
    origin = letter.extras.origin if letter.extras is not None and is_dead_letter(letter) else None
    if origin is None or letter.state == "active":
        return False
    [job] = await store.get(origin.queue, [origin.id])
    # In any other state it was sent back before, and perhaps has succeeded since.
    if job is not None and job.state == "failed":
        [answer] = await store.retry(origin.queue, [origin.id], reset=True)
        if answer.verdict == "missing":
            return False
    elif job is None:
        back = Extras(dead_letter=letter.queue)
        again = NewJob(
            origin.queue,
            origin.id,
            letter.name,
            letter.data,
            letter.options,
            priority=origin.priority,
            tags=origin.tags,
            extras=back,
        )
        [[added]] = await store.add([[again]])
        if added.verdict == "conflict":
            return False
    await store.remove(letter.queue, [letter.id])
    return True
