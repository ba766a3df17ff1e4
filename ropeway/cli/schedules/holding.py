"""`ropeway schedules pause` and `resume`."""

from __future__ import annotations

import click

from ...client.schedule import Schedule
from ...client.schedules import Schedules
from ...store.contract import Store
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from .completing import complete_schedule
from .locating import locate_sound
from .reporting import in_words


@click.command(epilog=examples("ropeway schedules pause nightly", "ropeway schedules pause nightly --queue reports"))
@click.argument("id", shell_complete=complete_schedule)
@queue_option
@url_option
@json_option
@on_store()
async def pause(store: Store, id: str, queue: str | None, as_json: bool) -> None:
    """Pause a schedule; jobs that it made go on."""
    schedules = Schedules((await locate_sound(store, id, queue)).queue)
    await _report(await schedules.pause(id), store, as_json=as_json)


@click.command(epilog=examples("ropeway schedules resume nightly"))
@click.argument("id", shell_complete=complete_schedule)
@queue_option
@url_option
@json_option
@on_store()
async def resume(store: Store, id: str, queue: str | None, as_json: bool) -> None:
    """End the pause of a schedule.

    Runs in between are not made up for.
    """
    schedules = Schedules((await locate_sound(store, id, queue)).queue)
    await _report(await schedules.resume(id), store, as_json=as_json)


async def _report(schedule: Schedule, store: Store, *, as_json: bool) -> None:
    if as_json:
        document = {"queue": schedule.queue, "id": schedule.id, "paused": schedule.paused, "next_at": schedule.next_at}
        click.echo(json_text(document))
    else:
        click.echo(f"{schedule.id} {in_words(schedule, await store.clock())}")
