"""Finding the jobs that match a filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...client.queue import Queue
from ...client.workers import known_queues
from ...job.states import State
from ...store.contract import Store
from ...store.values import BATCH
from ..stores import known_queue


class Chosen(NamedTuple):
    queue: Queue
    ids: list[str]


async def queues_of(store: Store, name: str | None) -> list[Queue]:
    """The named queue, or all."""
    return [await known_queue(store, each) for each in ([name] if name else await known_queues(store))]


async def choose(
    store: Store, queue: str | None, states: Sequence[State], name: str | None, limit: int | None
) -> list[Chosen]:
    """Reads the ids of all matching jobs, so that exactly these are counted, confirmed and moved."""
    chosen, left = [], limit
    for candidate in await queues_of(store, queue):
        ids = await _matching(candidate, states, name, left)
        if ids:
            chosen.append(Chosen(candidate, ids))
        left = None if left is None else left - len(ids)
        if left == 0:
            break
    return chosen


async def _matching(queue: Queue, states: Sequence[State], name: str | None, limit: int | None) -> list[str]:
    ids: list[str] = []
    after = None
    while limit is None or len(ids) < limit:
        size = BATCH if limit is None else min(BATCH, limit - len(ids))
        page = await queue.find(*states, name=name, limit=size, after=after)
        ids += [job.id for job in page]
        if page.next is None:
            break
        after = page.next
    return ids
