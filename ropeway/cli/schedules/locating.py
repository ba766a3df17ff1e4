"""Finding the schedule that a command names."""

from __future__ import annotations

import click

from ...client.found_schedules import FoundSchedule, found
from ...client.queue import Queue
from ...client.schedules import PAGE
from ...job.names import schedule_id
from ...store.contract import Store
from ..exit_codes import NotFound
from ..jobs.choosing import queues_of
from ..stores import near


async def locate(store: Store, id: str, queue: str | None) -> FoundSchedule:
    """The schedule with this id, in the named queue or in any. An id in two queues needs `--queue`."""
    queues = await queues_of(store, queue)
    located = [found(each, stored) for each in queues for stored in await store.schedules(each.name, [schedule_id(id)])]
    if len(located) > 1:
        names = " and ".join(each.queue.name for each in located)
        raise click.UsageError(f"schedule {id!r} is in {names}: say which with --queue")
    if not located:
        where = f"queue {queue!r} has no" if queue else f"no queue of {store.url} has a"
        hint = near(id, await _ids(store, queues), "there is no schedule yet")
        raise NotFound(f"{where} schedule {id!r}{hint}")
    return located[0]


async def locate_sound(store: Store, id: str, queue: str | None) -> FoundSchedule:
    """The same, for what cannot be done with a damaged one."""
    located = await locate(store, id, queue)
    if located.schedule is None:
        raise click.ClickException(
            f"schedule {id!r} of {located.queue.name} cannot be read ({located.damage}): remove it, and make it again"
        )
    return located


async def _ids(store: Store, queues: list[Queue]) -> list[str]:
    return [stored.id for queue in queues for stored in await store.schedules(queue.name, limit=PAGE)]
