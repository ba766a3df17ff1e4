"""Text widths in terminal cells: Asian characters take two, combining accents none."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    if cell_len(text) <= width:
        return text
    room = width - len(ellipsis)
    if room <= 0:
        return ellipsis[: max(0, width)]
    return f"{chop_cells(text, room)[0]}{ellipsis}"


def wrap(text: str, width: int, most: int) -> list[str]:
    """Wraps text at that width, between words if possible; what does not fit into the last line is cut."""
    lines: list[str] = []
    while len(lines) < most - 1 and cell_len(text) > width:
        head = chop_cells(text, width)[0]
        if text[len(head)] != " " and (space := head.rfind(" ")) > 0:
            head = head[:space]
        lines.append(head.rstrip())
        text = text[len(head) :].lstrip()
    return [*lines, cut(text, width)]
