"""The commands and the exit codes, as the command line has them."""

from __future__ import annotations

import click

from ropeway.cli.exit_codes import MEANINGS
from ropeway.cli.main import cli

from .tables import code, table


def commands() -> str:
    with click.Context(cli, info_name="ropeway") as context:
        rows = [[code(f"ropeway {name}"), _about(cli, context, name)] for name in cli.list_commands(context)]
    return table(["command", "does"], rows)


def exit_codes() -> str:
    return table(["exit code", "means"], [[code(number.value), meaning] for number, meaning in MEANINGS.items()])


def _about(group: click.Group, context: click.Context, name: str) -> str:
    command = group.get_command(context, name)
    assert command is not None
    return (command.help or "").splitlines()[0].removesuffix(".")
