"""`ropeway jobs signal`."""

from __future__ import annotations

import click

from ...store.contract import Store
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..payloads import read_data
from ..stores import on_store
from ..text import as_json as json_text
from ..unhandled import warn
from .locating import locate_one


@click.command(
    epilog=examples(
        "ropeway jobs signal order-42 payment '{\"paid\": true}'",
        "ropeway jobs signal 4e5f6a7b approved    # without data",
    )
)
@click.argument("id")
@click.argument("name")
@click.argument("data", required=False, metavar="[JSON|-|@FILE]")
@queue_option
@url_option
@json_option
@on_store()
async def signal(store: Store, id: str, name: str, data: str | None, queue: str | None, as_json: bool) -> None:
    """Send a signal to a job that waits for it, now or later, by `job.wait_for(name)`."""
    value = read_data(data)
    found, id = await locate_one(store, id, queue)
    # Before the signal: a job that goes on may soon wait for the next one.
    job = await found.get(id)
    wait = None if job is None else job.snapshot.waits_for
    await found.signal(id, name, value)
    awaited = None if wait is None else wait.signal
    if as_json:
        click.echo(json_text({"id": id, "queue": found.name, "signal": name, "waits_for": awaited}))
    else:
        click.echo(f"{id} signalled")
    if awaited not in (None, name):
        warn(f"{id} waits for {awaited!r}, not for {name!r}: the signal is kept for a later wait of that name")
