"""Confirmation of irreversible actions."""

from __future__ import annotations

import sys

import click

from .exit_codes import ExitCode
from .interrupts import interruptible


def confirm(what: str, *, yes: bool) -> None:
    """Returns if it was confirmed. Without a terminal only `--yes` confirms."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what}? There is no terminal to ask on: add --yes if you mean it")
    with interruptible():
        is_meant = click.confirm(f"{what}?", err=True)
    if not is_meant:
        click.echo("Nothing was done.", err=True)
        raise click.exceptions.Exit(ExitCode.FAILED)
