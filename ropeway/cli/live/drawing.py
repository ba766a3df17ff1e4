"""Drawing a picture as the text of a whole terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from ..cells import cut
from . import panels
from .glyphs import Glyphs
from .layout import Plan, plan
from .picture import Picture
from .table import queue_table
from .texts import one_line, seconds, time_of_day


class View(NamedTuple):
    """The user's settings of the view."""

    selected: str | None = None
    """The selected queue; None for all."""
    paused: bool = False
    interval: float | None = None
    """Seconds between two pictures; None for a single one."""
    keys: bool = True


def draw(picture: Picture, view: View, width: int, height: int, glyphs: Glyphs) -> RenderableType:
    """The drawing, with exactly the given width and height."""
    layout = plan(
        width, height, len(picture.queues), events=view.interval is not None, next_runs=bool(picture.next_runs)
    )
    drawing = Drawing(picture, view, layout, glyphs)
    regions = [Layout(drawing.header(), size=1), Layout(drawing.queues(), size=layout.queues)]
    if layout.chart:
        regions.append(Layout(drawing.chart(), size=layout.chart))
    if layout.next_runs:
        regions.append(Layout(drawing.next_runs(), size=1))
    if layout.running and layout.side_by_side:
        regions.append(Layout(size=layout.running))
        regions[-1].split_row(
            Layout(drawing.running(width - width // 3)), Layout(drawing.workers(width // 3), size=width // 3)
        )
    elif layout.running:
        regions.append(Layout(drawing.running(width), size=layout.running))
    if layout.workers:
        regions.append(Layout(drawing.workers(width), size=layout.workers))
    if layout.events and layout.failures and layout.side_by_side:
        regions.append(Layout(size=layout.events))
        regions[-1].split_row(
            Layout(drawing.events(width - width // 2)), Layout(drawing.failures(width // 2), size=width // 2)
        )
    else:
        if layout.failures:
            regions.append(Layout(drawing.failures(width), size=layout.failures))
        if layout.events:
            regions.append(Layout(drawing.events(width), size=layout.events))
    if layout.footer:
        regions.append(Layout(drawing.footer(), size=1))
    whole = Layout(size=height)
    whole.split_column(*regions)
    return whole


class Drawing:
    def __init__(self, picture: Picture, view: View, layout: Plan, glyphs: Glyphs) -> None:
        self._picture = picture
        self._narrowed = picture.of(view.selected)
        self._view = view
        self._layout = layout
        self._glyphs = glyphs

    def header(self) -> Text:
        """The header: the store on the left, the age of the data on the right."""
        right = self._status()
        room = self._layout.width - right.cell_len - 1
        left = Text.assemble((" ropeway ", "bold black on cyan"), no_wrap=True)
        store = cut(
            one_line(self._picture.store, self._glyphs.encoding), room - left.cell_len - 1, self._glyphs.ellipsis
        )
        left.append(f" {store}", "dim")
        if left.cell_len > room:
            return right
        left.pad_right(self._layout.width - left.cell_len - right.cell_len)
        return left.append_text(right)

    def _status(self) -> Text:
        glyphs, picture = self._glyphs, self._picture
        time = time_of_day(picture.at)
        if picture.trouble is not None:
            return Text.assemble((f"{glyphs.alarm} store lost, seen {time} ", "bold red"))
        said = "" if self._layout.width < 60 else f"{panels.busy(picture.workers)}  "
        workers = (said, "dim" if picture.workers else "yellow")
        if self._view.paused:
            return Text.assemble(workers, (f"{glyphs.pause} paused {time} ", "bold yellow"))
        return Text.assemble(workers, (glyphs.dot, "green"), f" {time} ")

    def footer(self) -> Text:
        picture, glyphs = self._picture, self._glyphs
        if picture.trouble is not None:
            return self._line(f" {picture.trouble}", "red")
        if picture.unknown_queues:
            return self._line(f" no queue yet: {', '.join(picture.unknown_queues)}", "yellow")
        if picture.more_queues:
            return self._line(f" {picture.more_queues:,} more queues: choose with --queue", "yellow")
        if not self._view.keys:
            return Text(" ")
        keys = [("q", "quit"), ("p", "go on" if self._view.paused else "pause"), (glyphs.arrows, "queue")]
        if self._view.selected is not None:
            keys.append(("a", "all queues"))
        line = Text(" ")
        for key, meaning in keys:
            line.append(key, "bold").append(f" {meaning}   ", "dim")
        if any(queue.missed_events for queue in picture.queues):
            line.append("events came faster than they were read; counts are right", "yellow")
        line.truncate(self._layout.width, overflow="crop")
        return line

    def _line(self, text: str, style: str) -> Text:
        return Text(cut(one_line(text, self._glyphs.encoding), self._layout.width, self._glyphs.ellipsis), style)

    def queues(self) -> RenderableType:
        layout = self._layout
        if not self._picture.queues:
            return self._panel(
                "queues", [Text("No queues yet: they appear with their first job.", "dim")], layout.width
            )
        rows = layout.queues - (layout.frame if layout.boxed else 0)
        table = queue_table(self._picture.queues, self._view.selected, self._inner(layout.width), rows, self._glyphs)
        return self._panel("queues", table, layout.width) if layout.boxed else Group(*table)

    def chart(self) -> RenderableType:
        chosen = [queue for queue in self._picture.queues if self._view.selected in (None, queue.name)]
        layout = self._layout
        if layout.chart == 1:
            return panels.chart(chosen, layout.width, 1, self._glyphs)[0]
        lines = panels.chart(chosen, self._inner(layout.width), layout.chart - layout.frame, self._glyphs)
        steps = max((len(queue.throughput) * queue.throughput_step for queue in chosen), default=0)
        shown = min(
            steps, (self._inner(layout.width) - 8) * max((queue.throughput_step for queue in chosen), default=1)
        )
        return self._panel(f"completed/s in the last {seconds(shown)}", lines, layout.width)

    def next_runs(self) -> RenderableType:
        picture = self._narrowed
        return panels.next_runs(picture.next_runs, self._layout.width, self._glyphs)

    def running(self, width: int) -> RenderableType:
        picture = self._narrowed
        active = sum(queue.counts["active"] for queue in picture.queues if self._view.selected in (None, queue.name))
        several = len({job.queue for job in picture.running}) > 1
        lines = panels.running(picture.running, self._inner(width), several, self._glyphs)
        return self._panel(f"running {active:,}", lines, width)

    def workers(self, width: int) -> RenderableType:
        alive = self._narrowed.workers
        return self._panel(f"workers {len(alive):,}", panels.workers(alive, self._inner(width), self._glyphs), width)

    def events(self, width: int) -> RenderableType:
        return self._panel("events", panels.events(self._narrowed.events, self._inner(width), self._glyphs), width)

    def failures(self, width: int) -> RenderableType:
        lines = panels.failures(self._narrowed.failures, self._inner(width), self._glyphs)
        return self._panel("latest failures", lines, width)

    def _inner(self, width: int) -> int:
        return max(1, width - 4) if self._layout.boxed else width

    def _panel(self, title: str, lines: Sequence[Text], width: int) -> RenderableType:
        if not self._layout.boxed:
            return Group(Text(title, "bold cyan"), *lines)
        named = Text(f" {title} ", "bold cyan")
        return Panel(
            Group(*lines), title=named, title_align="left", box=box.ROUNDED, border_style="bright_black", width=width
        )
