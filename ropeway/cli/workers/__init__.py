"""`ropeway workers`: listing, pausing and draining workers."""

from __future__ import annotations

import click

from ..helping import examples
from .listing import list_workers
from .ordering import drain, pause, resume


@click.group(
    epilog=examples("ropeway workers list", "ropeway workers pause web-1:4711:0a1b2c", "ropeway workers drain 0a1b2c")
)
def workers() -> None:
    """List, pause, resume and drain workers."""


for command in (list_workers, pause, resume, drain):
    workers.add_command(command)
