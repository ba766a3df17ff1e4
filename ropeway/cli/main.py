"""The `ropeway` command, of which every other is a part."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from ..errors import InvalidInput, RopewayError, StoreError


class Commands(click.Group):
    """Imports the file of a command when the command is called: none has to wait for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["top"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f".{cmd_name}", __package__), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """No error of ours leaves it as a traceback."""
        try:
            return super().invoke(ctx)
        except RopewayError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(2 if isinstance(error, InvalidInput) else 4 if isinstance(error, StoreError) else 1)


@click.group(cls=Commands)
def cli() -> None:
    """Look at queues, add jobs and run workers."""
