"""The layout: which panels and columns fit into a terminal. It depends on sizes alone, so nothing jumps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

WIDE: Final = 110
"""Width from which panels are placed side by side."""
HIGH: Final = 30
"""Height from which there is a panel of workers; the header counts them anyway."""
NEXT_RUNS: Final = 14
"""Height from which there is a line of the next runs of schedules."""
BOXED: Final = (56, 18)
"""The smallest terminal in which panels have frames; in smaller ones they have a title only."""


class Plan(NamedTuple):
    """Rows of each panel, including its frame or title; 0 if it is left out."""

    width: int
    height: int
    boxed: bool
    side_by_side: bool
    footer: int
    queues: int
    chart: int
    next_runs: int
    """A line without a frame; 0 also if there are none."""
    running: int
    failures: int
    events: int
    workers: int
    """0 also if they are beside the running jobs."""

    @property
    def frame(self) -> int:
        """Rows of a panel that are not its content."""
        return 2 if self.boxed else 1


class Want(NamedTuple):
    """The least and most rows of content of a panel, and its share of the remaining rows."""

    panel: str
    least: int
    most: int
    share: int


_STACKED: Final = (
    Want("running", 2, 20, 3),
    Want("chart", 1, 1, 0),
    Want("failures", 1, 8, 1),
    Want("events", 2, 40, 2),
    Want("workers", 1, 4, 0),
)
# In this layout failures are beside the events, and workers beside the running jobs.
_SIDE_BY_SIDE: Final = (
    Want("running", 3, 20, 2),
    Want("events", 3, 40, 2),
    Want("failures", 3, 40, 2),
    Want("chart", 3, 6, 1),
)


def plan(width: int, height: int, queues: int, *, events: bool = True, next_runs: bool = False) -> Plan:
    """Without `events`, which a single picture does not have, other panels get their rows."""
    boxed = width >= BOXED[0] and height >= BOXED[1]
    frame = 2 if boxed else 1
    side_by_side = boxed and width >= WIDE and height >= 24
    footer = 1 if height >= 10 else 0
    next_row = 1 if next_runs and height >= NEXT_RUNS else 0
    body = max(0, height - 1 - footer - next_row)
    # The column names take a row; a title would add nothing.
    around = frame + 1 if boxed else 1
    queue_rows = min(body, around + min(max(1, queues), max(1, body // 3)))
    wants = _SIDE_BY_SIDE if side_by_side else _STACKED
    unwanted = {"workers"} if height < HIGH else set()
    unwanted.add("events" if not events else "failures" if side_by_side else "")
    rows = _share_out([want for want in wants if want.panel not in unwanted], body - queue_rows, frame)
    beside = rows.get("events", 0) if side_by_side and events else 0
    return Plan(
        width,
        height,
        boxed,
        side_by_side,
        footer,
        body - sum(rows.values()),
        rows.get("chart", 0),
        next_row,
        rows.get("running", 0),
        beside or rows.get("failures", 0),
        rows.get("events", 0),
        rows.get("workers", 0),
    )


def _share_out(wants: Sequence[Want], room: int, frame: int) -> dict[str, int]:
    """Gives each panel its least rows, by importance, while there is room; then the rest by shares."""
    rows: dict[str, int] = {}
    for want in wants:
        # A line of figures needs no frame.
        least = want.least + (frame if want.most > 1 else 0)
        if least <= room:
            rows[want.panel] = least
            room -= least
    growing = [want for want in wants if want.panel in rows and want.share]
    while room > 0 and growing:
        for want in list(growing):
            grant = min(want.share, room, want.most + frame - rows[want.panel])
            rows[want.panel] += grant
            room -= grant
            if rows[want.panel] >= want.most + frame:
                growing.remove(want)
    return rows


class ColumnWant(NamedTuple):
    name: str
    width: int


def choose(columns: Sequence[ColumnWant], importance: Sequence[str], room: int) -> list[ColumnWant]:
    """The most important columns that fit with a space between them, in display order."""
    widths = {column.name: column.width for column in columns}
    chosen: set[str] = set()
    used = -1
    for name in importance:
        if name in widths and used + 1 + widths[name] <= room:
            chosen.add(name)
            used += 1 + widths[name]
    return [column for column in columns if column.name in chosen]
