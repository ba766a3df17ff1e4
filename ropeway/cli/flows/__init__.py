"""`ropeway flows`: looking at flows."""

from __future__ import annotations

import click

from ..helping import examples
from .showing import show


@click.group(
    epilog=examples("ropeway flows show 4e5f6a7b    # the end of an id, as `ropeway top` shows it"),
)
def flows() -> None:
    """Show flows: jobs that wait for other jobs."""


flows.add_command(show)
