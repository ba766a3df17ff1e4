"""`ropeway tokens create`."""

from __future__ import annotations

import click

from ...job.durations import Duration, milliseconds
from ...server.roles import ROLES, Role
from ...server.tokens import create_token
from ...store.contract import Store
from ..completing import complete_queue
from ..helping import examples
from ..options import duration, json_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from .listing import described


@click.command(
    epilog=examples(
        "ropeway tokens create --role admin",
        "ropeway tokens create --role worker --queue emails --queue 'images-*'",
        "export ROPEWAY_TOKEN=$(ropeway tokens create --role viewer --expires 30d)",
    )
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    type=click.Choice([*ROLES]),
    help="What it allows; can be repeated.",
)
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Only these queues: a name, or its beginning and *; all by default.",
)
@click.option("--name", default="", help="What it is for.")
@click.option("--expires", type=duration, metavar="DURATION", help="How long it is valid; for ever by default.")
@url_option
@json_option
@on_store(make=True)
async def create(
    store: Store, roles: tuple[Role, ...], queues: tuple[str, ...], name: str, expires: Duration | None, as_json: bool
) -> None:
    """Create a token and print it. It is shown this once: the store keeps only its hash."""
    lasting = None if expires is None else milliseconds(expires, "expires")
    text, token = await create_token(store, roles, queues=queues or None, name=name, lasting=lasting)
    click.echo(json_text({**described(token), "token": text}) if as_json else text)
