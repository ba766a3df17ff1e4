"""`ropeway tokens`: access tokens of the server."""

from __future__ import annotations

import click

from ..helping import examples
from .creating import create
from .listing import list_tokens
from .revoking import revoke


@click.group(epilog=examples("ropeway tokens create --role worker --queue emails", "ropeway tokens list"))
def tokens() -> None:
    """Create, list and revoke the tokens of `ropeway serve`."""


for command in (create, list_tokens, revoke):
    tokens.add_command(command)
