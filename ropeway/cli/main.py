"""The `ropeway` command, of which every other is a part."""

from __future__ import annotations

import click


@click.group()
def cli() -> None:
    """Look at queues, add jobs and run workers."""
