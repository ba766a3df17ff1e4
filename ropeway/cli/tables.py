"""Rows of values: a table fitted to the terminal, or plain columns, whole, for a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import click
from rich.cells import cell_len

from .cells import cut
from .escaping import one_line

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
NARROWEST: Final = 7
"""What is left of a column that must make room for others."""
_GAP: Final = "  "


class Column(NamedTuple):
    title: str
    from_width: int = 0
    """The least width of a terminal that shows it."""
    is_number: bool = False
    is_whole: bool = False
    """Never cut short: it is there to be copied."""


def show_table(columns: Sequence[Column], rows: Iterable[Iterable[object]]) -> None:
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    chosen = [number for number, column in enumerate(columns) if room is None or column.from_width <= room]
    texts = [[one_line(str(cell)) for cell in row] for row in rows]
    columns = [columns[number] for number in chosen]
    lines = [[column.title.upper() for column in columns], *([row[number] for number in chosen] for row in texts)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    if room is None or _fit(columns, widths, room):
        for number, line in enumerate(lines):
            click.echo(_line(columns, widths, line, is_title=number == 0))
    else:
        _show_stacked(columns, lines[1:], room)


def _fit(columns: Sequence[Column], widths: list[int], room: int) -> bool:
    """Narrows the widest columns that may be cut until all fit; False if they do not even then."""
    flexible = [number for number, column in enumerate(columns) if not column.is_whole and not column.is_number]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > room:
        widest = max(flexible, key=lambda number: widths[number], default=None)
        if widest is None or widths[widest] <= NARROWEST:
            return False
        widths[widest] -= 1
    return True


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str], *, is_title: bool = False) -> str:
    parts = []
    for column, width, cell in zip(columns, widths, cells, strict=True):
        text = cut(cell, width)
        space = " " * (width - cell_len(text))
        colour = STATE_COLOURS.get(cell)
        styled = click.style(text, fg=colour, bold=is_title or None) if colour or is_title else text
        parts.append(f"{space}{styled}" if column.is_number else f"{styled}{space}")
    return _GAP.join(parts).rstrip()


def _show_stacked(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> None:
    """What must stay whole on a line of its own, and the rest below it."""
    for row in rows:
        cells = list(zip(columns, row, strict=True))
        click.echo(_GAP.join(cell for column, cell in cells if column.is_whole))
        click.echo(cut(_GAP + _GAP.join(cell for column, cell in cells if cell and not column.is_whole), room))
