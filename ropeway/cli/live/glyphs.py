"""Glyphs of the live view, and their replacements for other encodings than UTF-8."""

from __future__ import annotations

from typing import Final, NamedTuple


class Glyphs(NamedTuple):
    levels: str
    """Fill levels of one cell, from empty to full."""
    line: str
    """Levels of a one-line chart, where zero is visible."""
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
    """Unicode glyphs only for UTF-8: other encodings have some of them, but not all."""
    return UNICODE if encoding.lower().replace("-", "").startswith("utf") else ASCII


def line(heights: list[int], glyphs: Glyphs) -> str:
    return "".join(glyphs.line[min(height, len(glyphs.line) - 1)] for height in heights)


def columns(heights: list[int], rows: int, glyphs: Glyphs) -> list[str]:
    """A bar chart as rows from the top; each row has as many steps as there are levels."""
    steps = len(glyphs.levels) - 1
    return [
        "".join(glyphs.levels[min(steps, max(0, height - row * steps))] for height in heights)
        for row in range(rows - 1, -1, -1)
    ]
