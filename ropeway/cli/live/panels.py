"""The panels of the view, each as lines of exactly the given width."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from ...job.events import EVENT_NAMES
from ..cells import cut
from ..ids import short_id
from .figures import heights
from .glyphs import Glyphs, columns, line
from .grid import Column, Grid
from .picture import (
    Failure,
    HappenedEvent,
    NextRun,
    QueuePicture,
    RunningJob,
    RunningPhase,
    WorkerPicture,
    throughput_of,
)
from .texts import number, one_line, percent, rate, seconds, short_worker, time_of_day

SHORTEST_BAR: Final = 6
LATE: Final = 2.0
"""Seconds after which a run is late: a worker sees it at once, and this view at the next look."""
_LONGEST_NAME: Final = max(map(len, EVENT_NAMES))
EVENT_STYLES: Final = {
    "added": "blue",
    "active": "cyan",
    "completed": "green",
    "retrying": "yellow",
    "stalled": "yellow",
    "lock-lost": "yellow",
    "failed": "bold red",
    "cancelled": "magenta",
}


def chart(queues: Sequence[QueuePicture], width: int, rows: int, glyphs: Glyphs) -> list[Text]:
    """A chart of completed jobs per second, with a scale; a single line if it has only one row."""
    numbers = throughput_of(queues)
    if rows == 1:
        label = Text(" completed/s ", "dim")
        now = Text(f" {numbers[-1] if numbers else 0:>6.1f}")
        room = max(0, width - label.cell_len - now.cell_len)
        drawn = line(heights(numbers, room, len(glyphs.line) - 1), glyphs)
        return [Text.assemble(label, (drawn.rjust(room), "green"), now)]
    room = max(0, width - 8)
    shown = heights(numbers, room, rows * (len(glyphs.levels) - 1))
    top = max(numbers[-room:] if room else [], default=0.0)
    lines = []
    for row, drawn in enumerate(columns(shown, rows, glyphs)):
        scale = rate(top) if row == 0 and top else "0" if row == rows - 1 else ""
        lines.append(Text.assemble((f"{scale:>6} ", "dim"), (drawn.rjust(room), "green"), " "))
    return lines


def next_runs(runs: Sequence[NextRun], width: int, glyphs: Glyphs) -> Text:
    """As many of the next runs of schedules as fit on a line."""
    line = Text(" next runs ", "dim", no_wrap=True)
    if not runs:
        line.append(" none", "dim")
    for position, run in enumerate(runs):
        is_late = run.seconds < -LATE
        when = (
            f"{seconds(-run.seconds)} late" if is_late else "now" if run.seconds < 1 else f"in {seconds(run.seconds)}"
        )
        gap = f" {glyphs.separator} " if position else " "
        room = width - line.cell_len - len(gap) - len(when) - 2
        name = one_line(run.schedule, glyphs.encoding)
        if room < (cell_len(name) if position else 4):
            break
        line.append(gap, "dim").append(cut(name, room, glyphs.ellipsis), "bold")
        line.append(f" {when}", "yellow" if is_late else "cyan")
    line.truncate(width)
    return line


def running(jobs: Sequence[RunningJob], width: int, several_queues: bool, glyphs: Glyphs) -> list[Text]:
    if not jobs:
        return [Text("Nothing runs.", "dim")]
    has_attempts = any(job.attempts > 1 for job in jobs)
    worker_width = 18 if width >= 100 else 10 if width >= 70 else 0
    queue_width = 10 if several_queues and width >= 70 else 0
    id_width = 9 if width >= 52 else 0
    fixed = [queue_width, id_width, worker_width, 3 if has_attempts else 0, 6]
    used = sum(each + 1 for each in fixed if each)
    bar = max(10, min(34, (width - used) // 2))
    wanted = [
        Column("job", max(6, width - used - bar - 1)),
        Column("queue", queue_width),
        Column("id", id_width),
        Column("worker", worker_width),
        Column("try", 3 if has_attempts else 0),
        Column("time", 6, right=True),
        Column("progress", bar),
    ]
    grid = Grid([column for column in wanted if column.width], glyphs)
    lines = []
    for job in jobs:
        cells: list[tuple[str, str] | Text] = [
            (job.name, "bold"),
            (job.queue, "dim"),
            (short_id(job.id), "dim"),
            (short_worker(job.worker), "dim"),
            (f"{job.attempt}/{job.attempts}" if job.attempts > 1 else "", "yellow" if job.attempt > 1 else "dim"),
            (seconds(job.seconds), "cyan"),
            progress_bar(job, bar, glyphs),
        ]
        lines.append(grid.row([cell for column, cell in zip(wanted, cells, strict=True) if column.width]))
    return lines


def progress_bar(job: RunningJob, width: int, glyphs: Glyphs) -> Text:
    share = percent(job.progress)
    if share is not None and job.phase is not None:
        return _phase_bar(job.phase, share, width, glyphs)
    if share is None:
        said = "" if job.progress is None else one_line(_said(job.progress), glyphs.encoding)
        return Text(cut(said, width, glyphs.ellipsis), "italic")
    return Text.assemble(*_bar(share, max(1, width - 5), glyphs), f" {share:3.0f}%")


def _phase_bar(phase: RunningPhase, share: float, width: int, glyphs: Glyphs) -> Text:
    """`2/3 process ━━━───  42 %`, without the bar where there is little room."""
    said = f" {share:.0f} %"
    label = one_line(f"{phase.number}/{phase.of} {phase.name}", glyphs.encoding)
    room = width - cell_len(label) - len(said) - 1
    if room < SHORTEST_BAR:
        return Text.assemble(cut(label, width - len(said), glyphs.ellipsis), said)
    return Text.assemble(label, " ", *_bar(share, room, glyphs), said)


def _bar(share: float, room: int, glyphs: Glyphs) -> tuple[tuple[str, str], tuple[str, str]]:
    halves = round(share / 100 * room * 2)
    full = glyphs.bar * (halves // 2) + (glyphs.half if halves % 2 else "")
    return (full, "cyan"), (glyphs.rest * (room - len(full)), "bright_black")


def _said(progress: object) -> str:
    return progress if isinstance(progress, str) else json.dumps(progress, ensure_ascii=False)


def failures(failed: Sequence[Failure], width: int, glyphs: Glyphs) -> list[Text]:
    if not failed:
        return [Text("None.", "dim")]
    return [_sentence(each.at, each.name, "bold", each.reason, "red", width, glyphs) for each in reversed(failed)]


def events(happened: Sequence[HappenedEvent], width: int, glyphs: Glyphs) -> list[Text]:
    """Newest first."""
    if not happened:
        return [Text("Nothing has happened since this view began.", "dim")]
    lines = []
    # Names that applications give may be of any length; in a narrow panel what happened to which job matters more.
    longest = max(len(each.event) for each in happened) if width >= 60 else 0
    column = max(9, min(longest, _LONGEST_NAME))
    for each in reversed(happened):
        style = EVENT_STYLES.get(each.event, "")
        subject = " ".join(filter(None, [", ".join(each.names), f"×{each.count:,}" if each.count > 1 else ""]))
        rest = ": ".join(filter(None, [subject or each.id or each.queue, each.note]))
        lines.append(_sentence(each.at, f"{each.event:<{column}}", style, rest, "", width, glyphs))
    return lines


def _sentence(at: int, first: str, style: str, rest: str, rest_style: str, width: int, glyphs: Glyphs) -> Text:
    """The time, a word or two, and as much of the rest as fits; without the time in a narrow terminal."""
    time = f"{time_of_day(at)} " if width >= 36 else ""
    words = one_line(first, glyphs.encoding).ljust(len(first))
    details = cut(words, max(0, width - len(time)), glyphs.ellipsis)
    line = Text.assemble((time, "dim"), (details, style))
    room = width - line.cell_len - 2
    if room > 3:
        line.append(f"  {cut(one_line(rest, glyphs.encoding), room, glyphs.ellipsis)}", rest_style)
    return line


def workers(alive: Sequence[WorkerPicture], width: int, glyphs: Glyphs) -> list[Text]:
    if not alive:
        return [Text("No worker is alive.", "yellow")]
    grid = Grid(
        [Column("worker", max(8, width - 18)), Column("runs", 9, right=True), Column("up", 7, right=True)], glyphs
    )
    return [
        grid.row(
            [
                (short_worker(worker.name), "yellow" if worker.paused else ""),
                (
                    "paused" if worker.paused else f"{worker.running}/{worker.concurrency}",
                    "cyan" if worker.running else "dim",
                ),
                (seconds(worker.seconds), "dim"),
            ]
        )
        for worker in alive
    ]


def busy(alive: Sequence[WorkerPicture]) -> str:
    """A one-line summary of all workers."""
    if not alive:
        return "no workers"
    running, slots = sum(worker.running for worker in alive), sum(worker.concurrency for worker in alive)
    return f"{number(len(alive))} worker{'s' if len(alive) > 1 else ''}, {number(running)}/{number(slots)} busy"
