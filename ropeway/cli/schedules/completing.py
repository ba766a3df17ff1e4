"""Shell completion of schedule ids."""

from __future__ import annotations

from zoneinfo import available_timezones

import click

from ...client.schedules import PAGE
from ...client.workers import known_queues
from ...store.contract import Store
from ..completing import asked


def complete_schedule(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The schedules of the queue that was given, or of all."""
    queue = context.params.get("queue")

    async def ids(store: Store) -> list[str]:
        queues = [queue] if queue else await known_queues(store)
        return sorted({stored.id for name in queues for stored in await store.schedules(name, limit=PAGE)})

    return asked(context, ids, incomplete)


def complete_zone(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return sorted(zone for zone in available_timezones() if zone.startswith(incomplete))
