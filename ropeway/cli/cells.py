"""Text in the cells of a terminal, of which Asian letters take two and accents none."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    if cell_len(text) <= width:
        return text
    room = width - len(ellipsis)
    if room <= 0:
        return ellipsis[: max(0, width)]
    return f"{chop_cells(text, room)[0]}{ellipsis}"
