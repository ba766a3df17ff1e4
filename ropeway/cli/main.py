"""The `ropeway` command, of which every other is a part."""

from __future__ import annotations

import click

from .top import top


@click.group()
def cli() -> None:
    """Look at queues, add jobs and run workers."""


cli.add_command(top)
