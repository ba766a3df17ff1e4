"""`ropeway schedules run`."""

from __future__ import annotations

import click

from ...store.contract import Store
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from ..unhandled import warn_of_unhandled_name
from .completing import complete_schedule
from .locating import locate_sound


@click.command(epilog=examples("ropeway schedules run nightly"))
@click.argument("id", shell_complete=complete_schedule)
@queue_option
@url_option
@json_option
@on_store()
async def run(store: Store, id: str, queue: str | None, as_json: bool) -> None:
    """Make a job of a schedule now, beside its own runs.

    Also of one that is paused. If jobs of this schedule must not overlap, and one is not final, that one is named.
    """
    located = await locate_sound(store, id, queue)
    job = await located.queue.schedules.run(id)
    if as_json:
        click.echo(json_text({"id": job.id, "created": job.created, "deduplicated": job.deduplicated}))
    else:
        click.echo(job.id)
        if job.deduplicated:
            click.echo("This job of an earlier run is not final: no other was added.", err=True)
    await warn_of_unhandled_name(located.queue, job.name)
