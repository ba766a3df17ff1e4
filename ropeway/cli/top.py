"""`ropeway top`: what happens in the queues, as it happens."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import click
from rich.console import Console

from ..job.names import queue_name
from .live.drawing import View, draw
from .live.gathering import Gatherer
from .live.glyphs import glyphs_for
from .live.lines import as_json, as_lines, follow
from .live.picture import Picture
from .live.screen import LiveScreen
from .live.signals import ending, until

LEAST_INTERVAL: Final = 0.2
CLOSED_PIPE: Final = 141


class NoSuchQueue(click.ClickException):
    exit_code = 3


@click.command()
@click.option(
    "--queue", "-q", "queues", multiple=True, metavar="NAME", help="Only this queue; may be given several times."
)
@click.option("--url", metavar="URL", help="The store; otherwise $ROPEWAY_URL, or the file ropeway.db in this folder.")
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
@click.option("--json", "json", is_flag=True, help="Write a line of JSON at every interval.")
@click.option("--plain", is_flag=True, help="Write a line of text for each queue at every interval.")
def top(queues: tuple[str, ...], url: str | None, interval: float, once: bool, json: bool, plain: bool) -> None:
    """Show queues, running jobs, workers, failures and events as they change.

    In a terminal it is a screen of its own: q quits, p pauses, the arrow keys and Tab choose a queue. Where the output
    goes into a pipe or a file it is as with --plain: a line for each queue at every interval.

    \b
    ropeway top
    ropeway top --queue emails --interval 0.5
    ropeway top --once
    ropeway top --json | jq '.queues[] | {name, waiting: .counts.waiting}'
    """  # noqa: D301 - click wants the character itself
    if json and plain:
        raise click.UsageError("--json and --plain were both given: give one of them.")
    gatherer = Gatherer(url, [queue_name(queue) for queue in queues], 0.0 if once else interval)
    try:
        code = asyncio.run(_top(gatherer, interval, once, json, plain))
    except BrokenPipeError:
        # What Python still holds for the reader who left must not be written at its end.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
    sys.exit(code)


async def _top(gatherer: Gatherer, interval: float, once: bool, json: bool, plain: bool) -> int:
    console = Console(highlight=False)
    written = as_json if json else partial(as_lines, encoding=glyphs_for(console.encoding).encoding)
    try:
        if once:
            return await _once(console, gatherer, written if json or plain else None)
        if json or plain or not console.is_terminal:
            return await follow(gatherer, interval, written, sys.stdout)
        return await LiveScreen(console, gatherer, interval).run()
    finally:
        await gatherer.close()


async def _once(console: Console, gatherer: Gatherer, written: Callable[[Picture], str] | None) -> int:
    async def show() -> None:
        picture = await gatherer.look()
        if picture.unknown_queues:
            raise NoSuchQueue(f"there is no queue {', '.join(map(repr, picture.unknown_queues))} in {picture.store}")
        if written is None:
            # In a terminal the last row is the prompt's.
            width, height = console.width, console.height - console.is_terminal
            console.print(draw(picture, View(keys=False), width, height, glyphs_for(console.encoding)), height=height)
        else:
            sys.stdout.write(written(picture))
            sys.stdout.flush()

    with ending() as end:
        return await until(end, asyncio.create_task(show()))
