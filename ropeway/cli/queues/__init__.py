"""`ropeway queues`: listing and managing queues."""

from __future__ import annotations

import click

from ..helping import examples
from .emptying import clean, drain, obliterate
from .holding import concurrency, pause, resume
from .listing import list_queues
from .retaining import retention


@click.group(epilog=examples("ropeway queues list", "ropeway queues pause emails", "ropeway queues list --json"))
def queues() -> None:
    """List, pause, resume, limit, clean, drain and obliterate queues."""


for command in (list_queues, pause, resume, concurrency, retention, clean, drain, obliterate):
    queues.add_command(command)
