"""`ropeway flows show`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ...client.flow_plan import MOST_NODES
from ...client.flow_tree import DEEPEST, FlowNode
from ...store.contract import Store
from ..escaping import one_line
from ..helping import examples
from ..jobs.locating import locate_one
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..tables import room_in_terminal
from ..text import as_json as json_text
from .changes import trees
from .document import document_of
from .drawing import about, tree_lines

_TICK: Final = 1.0
"""Seconds after which the times of running jobs are drawn again."""


@click.command(
    epilog=examples(
        "ropeway flows show 4e5f6a7b    # the end of an id, as `ropeway top` shows it",
        "ropeway flows show report-42 --follow",
        "ropeway flows show report-42 --depth 1 --limit 20",
        "ropeway flows show report-42 --json | jq '.jobs[] | [.id, .state]'",
    )
)
@click.argument("id")
@click.option("--follow", "-f", is_flag=True, help="Keep it current until its root has ended.")
@click.option("--depth", type=click.IntRange(0, DEEPEST), default=20, show_default=True, help="The most levels below.")
@click.option("--limit", type=click.IntRange(1, MOST_NODES), default=200, show_default=True, help="The most jobs.")
@queue_option
@url_option
@json_option
@on_store()
async def show(store: Store, id: str, follow: bool, depth: int, limit: int, queue: str | None, as_json: bool) -> None:
    """Show a job with its children, theirs, and so on, as they stand.

    What is left out because of --depth or --limit is counted. A job with two parents is shown once with all below it,
    and then only named. Of a removed child, what its parent knows is shown.

    JSON is one object with a flat list of jobs, the root first; with --follow, one a line after each change.
    """
    found, id = await locate_one(store, id, queue)
    if not follow:
        tree = await found.flow(id, depth=depth, limit=limit)
        _show(tree, as_json=as_json)
        return
    console = Console(highlight=False)
    async with contextlib.aclosing(trees(found, id, depth, limit)) as changing:
        if as_json:
            async for tree in changing:
                _show(tree, as_json=True)
        elif console.is_terminal:
            await _redraw(changing, console)
        else:
            await _print_changes(changing)


def _show(tree: FlowNode, *, as_json: bool) -> None:
    for line in [json_text(document_of(tree))] if as_json else tree_lines(tree, room_in_terminal()):
        click.echo(line)


async def _redraw(changing: AsyncGenerator[FlowNode, None], console: Console) -> None:
    """Draws at one place; the last state is printed whole."""
    tree: FlowNode | None = None
    with Live(console=console, auto_refresh=False, transient=True) as live:
        upcoming = asyncio.ensure_future(anext(changing, None))
        try:
            while True:
                await asyncio.wait([upcoming], timeout=_TICK)
                if upcoming.done():
                    if (latest := upcoming.result()) is None:
                        break
                    tree = latest
                    upcoming = asyncio.ensure_future(anext(changing, None))
                if tree is not None:
                    live.update(_screen(tree, console), refresh=True)
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
    if tree is not None:
        _show(tree, as_json=False)


def _screen(tree: FlowNode, console: Console) -> Text:
    """As many lines as the terminal has."""
    lines = tree_lines(tree, console.width)
    room = max(2, console.height - 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], f"… {len(lines) - room + 1:,} more lines"]
    return Text("\n").join(Text.from_ansi(line, no_wrap=True) for line in lines)


async def _print_changes(changing: AsyncGenerator[FlowNode, None]) -> None:
    """For a pipe: the tree, and then a line for each job that changed."""
    known: dict[tuple[str, str], str] | None = None
    async for tree in changing:
        if known is None:
            _show(tree, as_json=False)
        else:
            for node in tree.walk():
                if known.get((node.queue, node.id)) != node.state:
                    facts = (node.queue, node.id, node.name or "(removed)", node.state, about(node))
                    click.echo(one_line("  ".join(filter(None, facts))))
        known = {(node.queue, node.id): node.state for node in tree.walk()}
