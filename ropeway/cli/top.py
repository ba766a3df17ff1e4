"""`ropeway top`: a live view of the queues."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

import click
from rich.console import Console

from ..job.names import queue_name
from .completing import complete_queue
from .exit_codes import NotFound
from .helping import examples
from .live.drawing import View, draw
from .live.gathering import Gatherer
from .live.glyphs import glyphs_for
from .live.lines import follow, json_line, plain_lines
from .live.picture import Picture
from .live.screen import LiveScreen
from .live.signals import ending, until
from .options import json_option, url_option

LEAST_INTERVAL: Final = 0.2


@click.command(
    epilog=examples(
        "ropeway top",
        "ropeway top --queue emails --interval 0.5",
        "ropeway top --once",
        "ropeway top --json | jq '.queues[] | {name, waiting: .counts.waiting}'",
    )
)
@click.option(
    "--queue",
    "-q",
    "queues",
    multiple=True,
    metavar="QUEUE",
    shell_complete=complete_queue,
    help="Only this queue; can be repeated.",
)
@click.option(
    "--interval",
    "-i",
    type=click.FloatRange(LEAST_INTERVAL, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.option("--once", is_flag=True, help="Show one moment, and end.")
@click.option("--plain", is_flag=True, help="Print a line of text for each queue, at every interval.")
@url_option
@json_option
def top(queues: tuple[str, ...], interval: float, once: bool, plain: bool, url: str | None, as_json: bool) -> int:
    """Show queues, running jobs, workers, failures and events as they change.

    In a terminal it is a screen of its own: q quits, p pauses, the arrow keys and Tab choose a queue. Where the output
    goes into a pipe or a file it is as with --plain: a line for each queue at every interval. JSON is an object a line.
    """
    if math.isnan(interval):
        raise click.BadParameter("'nan' is no number of seconds", param_hint="--interval")
    if as_json and plain:
        raise click.UsageError("--json and --plain were both given: give one of them.")
    gatherer = Gatherer(url, [queue_name(queue) for queue in queues], 0.0 if once else interval)
    return asyncio.run(_top(gatherer, interval, once, as_json, plain))


async def _top(gatherer: Gatherer, interval: float, once: bool, as_json: bool, plain: bool) -> int:
    console = Console(highlight=False)
    written = json_line if as_json else partial(plain_lines, encoding=glyphs_for(console.encoding).encoding)
    in_words = as_json or plain or not console.is_terminal
    try:
        if once:
            return await _once(gatherer, written if in_words else partial(_drawn, console))
        if in_words:
            return await follow(gatherer, interval, written, sys.stdout)
        return await LiveScreen(console, gatherer, interval).run()
    finally:
        await gatherer.close()


async def _once(gatherer: Gatherer, written: Callable[[Picture], str]) -> int:
    async def show() -> None:
        picture = await gatherer.look()
        if picture.unknown_queues:
            raise NotFound(f"there is no queue {', '.join(map(repr, picture.unknown_queues))} in {picture.store}")
        sys.stdout.write(written(picture))
        sys.stdout.flush()

    with ending() as end:
        return await until(end, asyncio.create_task(show()))


def _drawn(console: Console, picture: Picture) -> str:
    # In a terminal the last row is for the prompt.
    width, height = console.width, console.height - console.is_terminal
    # Captured, because the console itself would end the program if the pipe is closed.
    with console.capture() as captured:
        console.print(draw(picture, View(keys=False), width, height, glyphs_for(console.encoding)), height=height)
    return captured.get()
