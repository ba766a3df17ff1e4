"""The signs that are drawn, and what stands for them where the encoding has no such signs."""

from __future__ import annotations

from typing import Final, NamedTuple


class Glyphs(NamedTuple):
    levels: str
    """From nothing to full, of one cell."""
    line: str
    """From zero to the highest, of a line of its own: zero can be seen."""
    bar: str
    half: str
    rest: str
    dot: str
    pause: str
    alarm: str
    pointer: str
    separator: str
    arrows: str
    ellipsis: str = "…"
    encoding: str = "utf-8"


UNICODE: Final = Glyphs(" ▁▂▃▄▅▆▇█", "▁▂▃▄▅▆▇█", "━", "╸", "─", "●", "‖", "▲", "▸", "·", "↑↓")
ASCII: Final = Glyphs(" .:-=+*%#", ".:-=+*%#", "#", "#", "-", "*", "=", "!", ">", "-", "arrows", "..", "ascii")


def glyphs_for(encoding: str) -> Glyphs:
    """Other encodings than UTF-8 could show some of the signs; nobody should have to find out which."""
    return UNICODE if encoding.lower().replace("-", "").startswith("utf") else ASCII


def line(heights: list[int], glyphs: Glyphs) -> str:
    return "".join(glyphs.line[min(height, len(glyphs.line) - 1)] for height in heights)


def columns(heights: list[int], rows: int, glyphs: Glyphs) -> list[str]:
    """Columns that stand side by side, as rows from the top; a row is as high as there are levels."""
    steps = len(glyphs.levels) - 1
    return [
        "".join(glyphs.levels[min(steps, max(0, height - row * steps))] for height in heights)
        for row in range(rows - 1, -1, -1)
    ]
