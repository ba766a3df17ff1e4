"""`ropeway webhooks deliver`."""

from __future__ import annotations

import click

from ...client.queue import Queue
from ...job.webhooks import DELIVERIES
from ...store.contract import Store
from ...worker.companions import Companion
from ...worker.options import MOST_CONCURRENCY
from ...worker.system_queues import WEBHOOKS
from ..helping import examples
from ..logs import LEVELS, LogFormat, set_up_logs
from ..options import url_option
from ..stores import on_store


@click.command(epilog=examples("ropeway webhooks deliver --concurrency 200"))
@click.option(
    "--concurrency", "-c", type=click.IntRange(1, MOST_CONCURRENCY), default=WEBHOOKS.concurrency, show_default=True
)
@click.option("--log-format", type=click.Choice(["pretty", "json"]), default="pretty", show_default=True)
@click.option("--json", "log_format", flag_value="json", help="The same as --log-format json.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@url_option
@on_store(make=True)
async def deliver(store: Store, concurrency: int, log_format: LogFormat, log_level: str) -> None:
    """Deliver webhooks, and nothing else, until Ctrl-C or SIGTERM.

    Workers deliver too; this is for workers with `webhooks=False`, such as those that cannot reach the internet.
    """
    set_up_logs(log_format, log_level, "")
    handler = WEBHOOKS.make_handler(store)
    try:
        await Companion(Queue(DELIVERIES, store=store), handler.run, concurrency=concurrency).run()
    finally:
        handler.close()
