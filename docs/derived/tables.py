"""Tables as Markdown writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_line(row) for row in (head, ["---"] * len(head), *rows))


def code(text: object) -> str:
    return f"`{text}`"


def duration(milliseconds: float) -> str:
    """In the largest unit that divides it: 30 s, 24 h, 7 days."""
    for unit, length in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        # A day is better said in hours.
        if milliseconds % length == 0 and milliseconds > (length if unit == "days" else 0):
            return f"{milliseconds // length:.0f} {unit}"
    return f"{milliseconds:g} ms"


def size(count: int) -> str:
    for unit, length in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count >= length:
            return f"{count // length} {unit}"
    return f"{count} bytes"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
