"""`ropeway schedules remove`."""

from __future__ import annotations

import click

from ...store.contract import Store
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from .completing import complete_schedule
from .locating import locate


@click.command(epilog=examples("ropeway schedules remove nightly", "ropeway schedules remove nightly --queue reports"))
@click.argument("id", shell_complete=complete_schedule)
@queue_option
@url_option
@json_option
@on_store()
async def remove(store: Store, id: str, queue: str | None, as_json: bool) -> None:
    """Remove a schedule, and jobs of it that have not begun.

    One that a decorator of a task gives is made again when a worker starts.
    """
    located = await locate(store, id, queue)
    await located.queue.schedules.remove(id)
    if as_json:
        click.echo(json_text({"queue": located.queue.name, "id": id, "removed": True}))
    else:
        click.echo(f"{id} removed from {located.queue.name}")
