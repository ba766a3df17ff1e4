"""The table of queues, with as many columns as fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from rich.text import Text

from ...job.states import State
from .figures import heights
from .glyphs import Glyphs, line
from .grid import Column, Grid
from .layout import ColumnWant, choose
from .picture import QueuePicture
from .texts import number, rate, seconds

Cell: TypeAlias = tuple[str, str]
NAME: Final = 12
TREND: Final = 14
OLD: Final = 60.0
"""Seconds of waiting from which an age is coloured."""


class QueueColumn(NamedTuple):
    title: str
    width: int
    cell: Callable[[QueuePicture], Cell]


def _count(state: State, style: str) -> Callable[[QueuePicture], Cell]:
    def cell(queue: QueuePicture) -> Cell:
        count = queue.counts.get(state, 0)
        return number(count), style if count else "dim"

    return cell


def _rate(move: str, style: str) -> Callable[[QueuePicture], Cell]:
    def cell(queue: QueuePicture) -> Cell:
        value: float = getattr(queue.rates, move)
        return rate(value), style if value else "dim"

    return cell


def _oldest(queue: QueuePicture) -> Cell:
    age = queue.oldest_waiting
    return seconds(age), "dim" if age is None else "yellow" if age >= OLD else ""


def _latency(which: str) -> Callable[[QueuePicture], Cell]:
    def cell(queue: QueuePicture) -> Cell:
        value = None if queue.latency is None else getattr(queue.latency, which)
        return seconds(value), "dim" if value is None else ""

    return cell


COLUMNS: Final = (
    QueueColumn("waiting", 7, _count("waiting", "yellow")),
    QueueColumn("active", 6, _count("active", "cyan")),
    QueueColumn("delayed", 7, _count("delayed", "blue")),
    QueueColumn("parents", 7, _count("waiting-children", "yellow")),
    QueueColumn("completed", 9, _count("completed", "green")),
    QueueColumn("failed", 6, _count("failed", "bold red")),
    QueueColumn("cancelled", 9, _count("cancelled", "magenta")),
    QueueColumn("added/s", 7, _rate("added", "")),
    QueueColumn("done/s", 6, _rate("completed", "green")),
    QueueColumn("failed/s", 8, _rate("failed", "red")),
    QueueColumn("oldest", 6, _oldest),
    QueueColumn("p50 wait", 8, _latency("p50")),
    QueueColumn("p95 wait", 8, _latency("p95")),
)
IMPORTANCE: Final = (
    *("queue", "waiting", "active", "failed", "done/s", "delayed", "parents", "oldest", "completed", "p95 wait"),
    *("trend", "added/s", "failed/s", "p50 wait", "cancelled"),
)
RARE: Final[dict[str, State]] = {"cancelled": "cancelled", "parents": "waiting-children"}
"""Columns that are shown only if a queue has such jobs."""


def queue_table(
    queues: Sequence[QueuePicture], selected: str | None, width: int, rows: int, glyphs: Glyphs
) -> list[Text]:
    """The header and as many queues as there are rows, always including the selected one."""
    chosen = _chosen(queues, width)
    names = [column.name for column in chosen]
    name_width = width - sum(column.width + 1 for column in chosen if column.name != "queue")
    columns = [Column("queue", name_width), *(Column(each, _width(each), right=True) for each in names[1:])]
    grid = Grid(columns, glyphs)
    by_title = {column.title: column.cell for column in COLUMNS}
    lines = [grid.head()]
    for queue in visible(queues, selected, rows - 1):
        cells: list[Cell | Text] = [_name(queue, queue.name == selected, glyphs)]
        cells += [_trend(queue, glyphs) if name == "trend" else by_title[name](queue) for name in names[1:]]
        lines.append(grid.row(cells))
    return lines


def _chosen(queues: Sequence[QueuePicture], width: int) -> list[ColumnWant]:
    absent = {title for title, state in RARE.items() if not any(queue.counts.get(state) for queue in queues)}
    wants = [
        ColumnWant("queue", NAME),
        *(ColumnWant(column.title, column.width) for column in COLUMNS if column.title not in absent),
        ColumnWant("trend", TREND),
    ]
    return choose(wants, IMPORTANCE, width)


def _width(title: str) -> int:
    return TREND if title == "trend" else next(column.width for column in COLUMNS if column.title == title)


def _name(queue: QueuePicture, is_selected: bool, glyphs: Glyphs) -> Cell:
    mark = f"{glyphs.pointer} " if is_selected else f"{glyphs.pause} " if queue.paused else ""
    style = "bold black on cyan" if is_selected else "bold yellow" if queue.paused else "bold"
    return f"{mark}{queue.name}", style


def _trend(queue: QueuePicture, glyphs: Glyphs) -> Text:
    drawn = line(heights(queue.throughput, TREND, len(glyphs.line) - 1), glyphs)
    return Text(drawn, "green")


def visible(queues: Sequence[QueuePicture], selected: str | None, rows: int) -> Sequence[QueuePicture]:
    """A window of the queues that contains the selected one."""
    names = [queue.name for queue in queues]
    place = names.index(selected) if selected in names else 0
    start = max(0, min(place - rows // 2, len(queues) - rows))
    return queues[start : start + max(0, rows)]
