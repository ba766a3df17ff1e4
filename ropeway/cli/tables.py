"""Rows of values: a table fitted to the terminal, or plain columns, whole, for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

import click

from .text import one_line

STATE_COLOURS: Final = {
    "waiting": "yellow",
    "waiting-children": "yellow",
    "delayed": "blue",
    "active": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "magenta",
}
LEVEL_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "red"}
_COLOURS: Final = STATE_COLOURS | LEVEL_COLOURS


class Column(NamedTuple):
    title: str
    from_width: int = 0
    """The least width of a terminal that shows it."""
    is_number: bool = False
    is_whole: bool = False
    """Never cut short: it is there to be copied."""


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    texts = [[one_line(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _show_in_terminal(columns, texts)
    else:
        _show_plainly(columns, texts)


def _show_plainly(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.title.upper() for column in columns], *rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, widths, columns, strict=True)
        text = "  ".join(cell.rjust(width) if column.is_number else cell.ljust(width) for cell, width, column in cells)
        click.echo(text.rstrip())


def _show_in_terminal(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    # It takes as long to import as all the rest: only where its tables are seen.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False)
    chosen = [number for number, column in enumerate(columns) if column.from_width <= console.width]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in (columns[number] for number in chosen):
        table.add_column(
            column.title.upper(),
            justify="right" if column.is_number else "left",
            no_wrap=not column.is_whole,
            overflow="fold" if column.is_whole else "ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(row[number], style=_COLOURS.get(row[number], "")) for number in chosen))
    console.print(table)
