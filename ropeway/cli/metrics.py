"""`ropeway metrics`: numbers for Prometheus."""

from __future__ import annotations

import click

from ..metrics import Exporter
from ..store.contract import Store
from .helping import examples
from .options import url_option
from .stores import on_store


@click.command(epilog=examples("ropeway metrics", "ropeway metrics > /var/lib/node_exporter/ropeway.prom"))
@url_option
@on_store()
async def metrics(store: Store) -> None:
    """Print the numbers of all queues for Prometheus.

    The same as /metrics of `ropeway serve`, without the numbers of the server itself.
    """
    click.echo(await Exporter(store).text(), nl=False)
