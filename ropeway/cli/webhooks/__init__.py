"""`ropeway webhooks`: deliveries of webhooks."""

from __future__ import annotations

import click

from ..helping import examples
from .delivering import deliver
from .enabling import enable
from .listing import list_deliveries
from .sending import send_again
from .showing import show


@click.group(
    epilog=examples(
        "ropeway webhooks list --state failed",
        "ropeway webhooks send-again orders:42:1900000000000:completed",
        "ropeway webhooks enable https://shop.example.com/hooks",
    )
)
def webhooks() -> None:
    """List, show and send again deliveries of webhooks, enable URLs, deliver."""


for command in (list_deliveries, show, send_again, enable, deliver):
    webhooks.add_command(command)
