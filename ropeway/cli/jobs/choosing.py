"""Which jobs a command is about: those with given ids, or those that a filter finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ...client.queue import Queue
from ...job.names import job_id
from ...job.states import State
from ...store.contract import Store
from ...store.values import BATCH
from ..exits import NotFound
from ..stores import known_queue, known_queues


class Chosen(NamedTuple):
    queue: Queue
    ids: list[str]


async def queues_of(store: Store, name: str | None) -> list[Queue]:
    """The one that is named, or all."""
    return [await known_queue(store, each) for each in ([name] if name else await known_queues(store))]


async def locate(store: Store, ids: Sequence[str], queue: str | None) -> tuple[list[Chosen], list[str]]:
    """Where jobs are, and the ids that no queue has. An id in two queues must be said with its queue."""
    places: dict[str, list[Queue]] = {job_id(each): [] for each in ids}
    for candidate in await queues_of(store, queue):
        for each, record in zip(places, await store.get(candidate.name, list(places)), strict=True):
            if record is not None:
                places[each].append(candidate)
    chosen: dict[str, Chosen] = {}
    for each, found in places.items():
        if len(found) > 1:
            names = " and ".join(place.name for place in found)
            raise click.UsageError(f"job {each!r} is in {names}: say which with --queue")
        for place in found:
            chosen.setdefault(place.name, Chosen(place, [])).ids.append(each)
    return list(chosen.values()), [each for each, found in places.items() if not found]


async def locate_one(store: Store, id: str, queue: str | None) -> Queue:
    chosen, _ = await locate(store, [id], queue)
    if not chosen:
        where = f"queue {queue!r}" if queue else f"no queue of {store.url}"
        said = "has no" if queue else "has a"
        raise NotFound(f"{where} {said} job {id!r}: it was never added, or was removed after it finished")
    return chosen[0].queue


async def choose(
    store: Store, queue: str | None, states: Sequence[State], name: str | None, limit: int | None
) -> list[Chosen]:
    """Reads the ids of all jobs that match, so that exactly those are counted, confirmed and moved."""
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
