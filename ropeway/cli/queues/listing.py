"""`ropeway queues list`."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...client.queue import Queue
from ...client.workers import WorkerInfo, known_queues, read_workers
from ...store.contract import Store
from ..escaping import one_line
from ..helping import examples
from ..options import json_option, url_option
from ..stores import on_store
from ..tables import Column, show_table
from ..text import as_json as json_text


@click.command(
    "list", epilog=examples("ropeway queues list", "ropeway queues list --json | jq '.queues[] | select(.paused)'")
)
@url_option
@json_option
@on_store()
async def list_queues(store: Store, as_json: bool) -> None:
    """List queues with their counts, workers and what is paused."""
    workers = await read_workers(store)
    described = [await _described(Queue(name, store=store), workers) for name in await known_queues(store, workers)]
    if as_json:
        click.echo(json_text({"store": store.url, "queues": described}))
    elif described:
        if sys.stdout.isatty():
            # Not in a pipe, where every line is a queue.
            click.secho(one_line(store.url), dim=True)
        _show(described)
    else:
        click.echo(f"No queues in {store.url} yet.", err=True)


async def _described(queue: Queue, workers: list[WorkerInfo]) -> dict[str, Any]:
    settings = await queue.settings()
    return {
        "name": queue.name,
        "counts": await queue.counts(),
        "workers": sum(queue.name in worker.queues for worker in workers),
        "paused": settings.paused,
        "paused_names": settings.paused_names,
        "max_global_concurrency": settings.max_active,
    }


_WIDTHS = {
    "waiting": 0,
    "active": 0,
    "failed": 30,
    "delayed": 60,
    "completed": 70,
    "cancelled": 90,
    "waiting-children": 100,
}
_RARE = "waiting-children"
"""The state that has a column only if a queue has such jobs."""


def _show(described: list[dict[str, Any]]) -> None:
    # A separate column only if a limit is set.
    limits = (
        [Column("limit", 100, is_number=True)] if any(queue["max_global_concurrency"] for queue in described) else []
    )
    widths = {
        state: width
        for state, width in _WIDTHS.items()
        if state != _RARE or any(queue["counts"][state] for queue in described)
    }
    columns = [
        Column("queue", is_whole=True),
        *(Column(state, width, is_number=True) for state, width in widths.items()),
        Column("workers", 50, is_number=True),
        *limits,
        Column("paused", 80),
    ]
    rows = [
        [
            queue["name"],
            *(queue["counts"][state] for state in widths),
            queue["workers"],
            *(queue["max_global_concurrency"] or "" for _ in limits),
            _pause(queue),
        ]
        for queue in described
    ]
    show_table(columns, rows)


def _pause(queue: dict[str, Any]) -> str:
    return "all" if queue["paused"] else ", ".join(queue["paused_names"])
