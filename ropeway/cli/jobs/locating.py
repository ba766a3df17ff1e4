"""The jobs that were given by their ids, in full or by their last letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ...client.queue import Queue
from ...job.names import job_id
from ...store.contract import Store
from ..exit_codes import NotFound
from ..ids import SHORTEST, is_short, is_too_short
from .choosing import Chosen, queues_of
from .searching import SEARCHED, Search


class Place(NamedTuple):
    queue: Queue
    id: str
    """In full."""


class Located(NamedTuple):
    chosen: list[Chosen]
    missing: list[str]
    is_partial: bool
    """Short ids were searched for, and there were more jobs than were looked at."""

    def hint(self, given: str) -> str:
        """Why a job may be there though it was not found."""
        if is_too_short(given):
            return f" (the end of an id will do, from {SHORTEST} letters on)"
        if not self.is_partial or not is_short(given):
            return ""
        return f" (short ids are searched among the newest {SEARCHED:,} jobs of each state: give the whole id)"


async def locate(store: Store, ids: Sequence[str], queue: str | None) -> Located:
    """Where jobs are, and the ids that no queue has. An id in two queues must be said with its queue."""
    queues = await queues_of(store, queue)
    places = await _places(queues, ids)
    search = await Search.through(queues, [each for each, found in places.items() if not found and is_short(each)])
    located = Located([], [], search.is_partial)
    for each, found in places.items():
        if len(found) > 1:
            names = " and ".join(place.queue.name for place in found)
            raise click.UsageError(f"job {each!r} is in {names}: say which with --queue")
        place = found[0] if found else _only(search, each)
        if place is None:
            located.missing.append(each)
        else:
            _choose(located.chosen, place)
    return located


async def locate_one(store: Store, id: str, queue: str | None) -> Place:
    located = await locate(store, [id], queue)
    if located.missing:
        where = f"queue {queue!r}" if queue else f"no queue of {store.url}"
        said = "has no" if queue else "has a"
        why = "it was never added, or was removed after it finished"
        raise NotFound(f"{where} {said} job {id!r}: {why}{located.hint(id)}")
    [chosen] = located.chosen
    return Place(chosen.queue, chosen.ids[0])


def _choose(chosen: list[Chosen], place: Place) -> None:
    for each in chosen:
        if each.queue is place.queue:
            if place.id not in each.ids:
                each.ids.append(place.id)
            return
    chosen.append(Chosen(place.queue, [place.id]))


async def _places(queues: Sequence[Queue], ids: Sequence[str]) -> dict[str, list[Place]]:
    """The queues that have a job with exactly that id."""
    places: dict[str, list[Place]] = {job_id(each): [] for each in ids}
    for queue in queues:
        for each, record in zip(places, await queue.store.get(queue.name, list(places)), strict=True):
            if record is not None:
                places[each].append(Place(queue, each))
    return places


def _only(search: Search, given: str) -> Place | None:
    """The one job that a short id can mean; if there are several, they are listed, and none is taken."""
    found = search.found.get(given, [])
    if len(found) > 1:
        search.show(given)
        raise click.UsageError(f"{given!r} is the end of {len(found)} ids: give more of the one you mean")
    return Place(found[0].queue, found[0].record.id) if found else None
