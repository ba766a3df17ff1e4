"""Locating jobs by their ids, given in full or by their last characters."""

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


class JobLocation(NamedTuple):
    queue: Queue
    id: str
    """The full id."""


class Located(NamedTuple):
    chosen: list[Chosen]
    missing: list[str]
    is_partial: bool
    """True if the search for short ids did not examine all jobs."""

    def hint(self, given: str) -> str:
        """Why a job may be there though it was not found."""
        if is_too_short(given):
            return f" (the end of an id will do, from {SHORTEST} letters on)"
        if not self.is_partial or not is_short(given):
            return ""
        return f" (short ids are searched among the newest {SEARCHED:,} jobs of each state: give the whole id)"


async def locate(store: Store, ids: Sequence[str], queue: str | None) -> Located:
    """The locations of jobs, and the ids that no queue has. An id in two queues needs `--queue`."""
    queues = await queues_of(store, queue)
    locations = await _locations(queues, ids)
    search = await Search.through(queues, [each for each, found in locations.items() if not found and is_short(each)])
    located = Located([], [], search.is_partial)
    for each, found in locations.items():
        if len(found) > 1:
            names = " and ".join(location.queue.name for location in found)
            raise click.UsageError(f"job {each!r} is in {names}: say which with --queue")
        location = found[0] if found else _only(search, each)
        if location is None:
            located.missing.append(each)
        else:
            _choose(located.chosen, location)
    return located


async def locate_one(store: Store, id: str, queue: str | None) -> JobLocation:
    located = await locate(store, [id], queue)
    if located.missing:
        where = f"queue {queue!r}" if queue else f"no queue of {store.url}"
        said = "has no" if queue else "has a"
        why = "it was never added, or was removed after it finished"
        raise NotFound(f"{where} {said} job {id!r}: {why}{located.hint(id)}")
    [chosen] = located.chosen
    return JobLocation(chosen.queue, chosen.ids[0])


def _choose(chosen: list[Chosen], location: JobLocation) -> None:
    for each in chosen:
        if each.queue is location.queue:
            if location.id not in each.ids:
                each.ids.append(location.id)
            return
    chosen.append(Chosen(location.queue, [location.id]))


async def _locations(queues: Sequence[Queue], ids: Sequence[str]) -> dict[str, list[JobLocation]]:
    """The queues that have a job with exactly this id."""
    locations: dict[str, list[JobLocation]] = {job_id(each): [] for each in ids}
    for queue in queues:
        for each, record in zip(locations, await queue.store.get(queue.name, list(locations)), strict=True):
            if record is not None:
                locations[each].append(JobLocation(queue, each))
    return locations


def _only(search: Search, given: str) -> JobLocation | None:
    """The only job that a short id matches; if there are several, they are listed, and it is an error."""
    found = search.found.get(given, [])
    if len(found) > 1:
        search.show(given)
        raise click.UsageError(f"{given!r} is the end of {len(found)} ids: give more of the one you mean")
    return JobLocation(found[0].queue, found[0].record.id) if found else None
