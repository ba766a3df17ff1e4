"""Rows of cells, each exactly as wide as its column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from ..cells import cut
from .glyphs import Glyphs
from .texts import one_line


class Column(NamedTuple):
    title: str
    width: int
    right: bool = False


class Grid:
    def __init__(self, columns: Sequence[Column], glyphs: Glyphs) -> None:
        self.columns = columns
        self._glyphs = glyphs

    def head(self) -> Text:
        return self.row([(column.title, "dim") for column in self.columns])

    def row(self, cells: Sequence[tuple[str, str] | Text]) -> Text:
        """Cells are text with a style, or prepared text of the right width."""
        line = Text(no_wrap=True)
        for position, (column, cell) in enumerate(zip(self.columns, cells, strict=True)):
            if position:
                line.append(" ")
            line.append_text(self._cell(column, cell))
        return line

    def _cell(self, column: Column, cell: tuple[str, str] | Text) -> Text:
        if isinstance(cell, Text):
            ready = cell.copy()
        else:
            ready = Text(cut(one_line(cell[0], self._glyphs.encoding), column.width, self._glyphs.ellipsis), cell[1])
        missing = column.width - ready.cell_len
        if missing > 0 and column.right:
            ready.pad_left(missing)
        elif missing > 0:
            ready.pad_right(missing)
        return ready
