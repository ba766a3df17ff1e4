"""Tables: fitted to the terminal, or plain untruncated columns for a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import click
from rich.cells import cell_len

from .cells import cut, wrap
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
"""The least width of a column that makes room for others."""
_GAP: Final = "  "
_ROOM_FOR_NOTES: Final = 40
"""Width beside a row from which a note is cut to fit there, unless it is `Wrapped`."""
_LINES: Final = 4
"""Most lines of one note."""


class Column(NamedTuple):
    title: str
    from_width: int = 0
    """The least terminal width in which it is shown."""
    is_number: bool = False
    is_whole: bool = False
    """True if it is never cut, because users copy it."""
    is_note: bool = False
    """True for a note (only the last column): it is shown below its row if there is little room."""


class Wrapped(str):
    """A note that is wrapped onto a few more lines instead of being cut."""

    __slots__ = ()


def room_in_terminal() -> int | None:
    """The terminal's width; None if the output is not a terminal, and lines are not limited."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    for line in table_lines(columns, rows, room_in_terminal()):
        click.echo(line)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[object]], room: int | None) -> Iterator[str]:
    chosen = [number for number, column in enumerate(columns) if room is None or column.from_width <= room]
    texts = [[one_line(str(cell)) for cell in row] for row in rows]
    columns = [columns[number] for number in chosen]
    lines = [[column.title.upper() for column in columns], *([row[number] for number in chosen] for row in texts)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    if room is not None and columns[-1].is_note:
        yield from _with_notes(columns, widths, lines, [1, *(_lines_of(row[-1]) for row in rows)], room)
    elif room is None or _fit(columns, widths, room):
        for number, line in enumerate(lines):
            yield _line(columns, widths, line, is_title=number == 0)
    else:
        yield from _stacked(columns, lines[1:], room)


def _lines_of(note: object) -> int:
    return _LINES if isinstance(note, Wrapped) else 1


def _with_notes(
    columns: Sequence[Column], widths: list[int], lines: Sequence[Sequence[str]], most: Sequence[int], room: int
) -> Iterator[str]:
    """Puts each note beside its row if it fits, otherwise below it in the full width."""
    *widths, _ = widths
    if not _fit(columns[:-1], widths, room):
        yield from _stacked(columns, lines[1:], room, most[1:])
        return
    left = max(0, room - sum(widths) - len(_GAP) * len(widths))
    for number, (line, limit) in enumerate(zip(lines, most, strict=True)):
        *cells, note = line
        is_beside = cell_len(note) <= left or (limit == 1 and left >= _ROOM_FOR_NOTES)
        yield _line(columns, [*widths, left], [*cells, note if is_beside else ""], is_title=number == 0)
        yield from _note_below(note, limit, room) if number and not is_beside else ()


def _note_below(note: str, most: int, room: int) -> list[str]:
    return [_GAP + part for part in wrap(note, room - len(_GAP), most)] if note else []


def _fit(columns: Sequence[Column], widths: list[int], room: int) -> bool:
    """Narrows the widest columns that may be cut until all fit; False if that is not enough."""
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
        styled = click.style(text, fg=colour, bold=is_title or None) if text and (colour or is_title) else text
        parts.append(f"{space}{styled}" if column.is_number else f"{styled}{space}")
    return _GAP.join(parts).rstrip()


def _stacked(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int, most: Sequence[int] | None = None
) -> Iterator[str]:
    """Puts uncut cells on one line and the others below, each limited so that all have room."""
    for row, limit in zip(rows, most or [1] * len(rows), strict=True):
        cells = list(zip(columns, row, strict=True))
        yield _GAP.join(cell for column, cell in cells if column.is_whole)
        short = [cut(cell, room // 2) for column, cell in cells if cell and not column.is_whole and not column.is_note]
        yield cut(_GAP + _GAP.join(short), room)
        for column, cell in cells:
            if column.is_note:
                yield from _note_below(cell, limit, room)
