"""`ropeway jobs change`."""

from __future__ import annotations

from typing import Any

import click

from ...store.contract import Store
from ..helping import examples
from ..options import duration, json_option, queue_option, url_option
from ..payloads import read_data
from ..spelling import instant
from ..stores import on_store
from ..text import as_json as json_text
from .locating import locate_one


@click.command(
    epilog=examples(
        "ropeway jobs change welcome-42 --priority -10",
        "ropeway jobs change welcome-42 --delay 2h",
        'ropeway jobs change welcome-42 --data \'{"to": "b@example.com"}\'',
    )
)
@click.argument("id")
@click.option("--priority", type=int, help="Lower goes first.")
@click.option("--lifo/--fifo", default=None, help="Ahead of all others of its priority, or at its place among them.")
@click.option("--delay", type=duration, help="Of a delayed job: wait this long from now.")
@click.option("--at", type=instant, help="Of a delayed job: wait until this instant.")
@click.option("--data", metavar="JSON|-|@FILE", help="What its handler will get.")
@queue_option
@url_option
@json_option
@on_store()
async def change(store: Store, /, id: str, queue: str | None, as_json: bool, **options: Any) -> None:
    """Change a job that is not finished: all of what is given, or nothing."""
    changes = {option: value for option, value in options.items() if value is not None}
    if not changes:
        raise click.UsageError("say what to change: --priority, --lifo, --delay, --at or --data")
    if "at" in changes:
        if "delay" in changes:
            raise click.UsageError("give --delay or --at, not both")
        changes["delay"] = changes.pop("at")
    if "data" in changes:
        changes["data"] = read_data(changes["data"])
    found, id = await locate_one(store, id, queue)
    await found.change(id, **changes)
    if as_json:
        click.echo(json_text({"id": id, "queue": found.name, "changed": sorted(changes)}))
    else:
        click.echo(f"{id} changed")
