"""`ropeway jobs logs` and `ropeway jobs clear-logs`."""

from __future__ import annotations

from typing import Any

import click

from ...client.queue import Queue
from ...showing import plural
from ...store.contract import Store
from ...store.values import BATCH, LogLine
from ..confirming import confirm
from ..escaping import one_line
from ..helping import examples
from ..options import json_option, queue_option, url_option, yes_option
from ..stores import on_store
from ..text import as_json as json_text
from ..text import instant_time, iso
from .locating import locate_one


@click.command(
    epilog=examples(
        "ropeway jobs logs welcome-42",
        "ropeway jobs logs welcome-42 --last 20",
        "ropeway jobs logs welcome-42 --json | jq -r '.log[].text'",
    )
)
@click.argument("id")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only so many, the newest.")
@queue_option
@url_option
@json_option
@on_store()
async def logs(store: Store, id: str, last: int | None, queue: str | None, as_json: bool) -> None:
    """Show the log lines that a job's handler wrote."""
    lines, earlier = await _read(*await locate_one(store, id, queue), last)
    if as_json:
        click.echo(json_text({**log_document(lines), "earlier_log_lines": earlier}))
        return
    for line in lines:
        click.echo(log_line(line))
    if earlier:
        click.echo(f"{plural(earlier, 'older line')} not {'kept' if last is None else 'shown'}", err=True)


@click.command(
    "clear-logs",
    epilog=examples("ropeway jobs clear-logs welcome-42", "ropeway jobs clear-logs welcome-42 --keep 100 --yes"),
)
@click.argument("id")
@click.option("--keep", type=click.IntRange(0, 1_000_000), default=0, metavar="N", help="Leave so many, the newest.")
@yes_option
@queue_option
@url_option
@json_option
@on_store()
async def clear_logs(store: Store, id: str, keep: int, yes: bool, queue: str | None, as_json: bool) -> None:
    """Forget the log lines of a job."""
    found, id = await locate_one(store, id, queue)
    rest = f" but the newest {keep}" if keep else ""
    confirm(f"Forget the log of {id}{rest}", yes=yes)
    await found.clear_logs(id, keep=keep)
    if as_json:
        click.echo(json_text({"id": id, "queue": found.name, "keep": keep}))
    else:
        click.echo(f"{id}: log cleared{rest}")


async def _read(queue: Queue, id: str, last: int | None) -> tuple[list[LogLine], int]:
    """The lines in the order of writing, and the number of earlier ones."""
    if last is None:
        history = await queue.history(id)
        return history.log, history.dropped_log_lines
    page = await queue.logs(id, limit=min(last, BATCH), newest_first=True)
    lines = [*page]
    while len(lines) < last and page.next is not None:
        page = await queue.logs(id, after=page.next, limit=min(last - len(lines), BATCH), newest_first=True)
        lines += page
    return lines[::-1], page.newest - len(lines)


def log_line(line: LogLine) -> str:
    return f"{instant_time(line.at)}  {one_line(line.text)}"


def log_document(lines: list[LogLine]) -> dict[str, Any]:
    return {"log": [{"at": iso(line.at), "text": line.text} for line in lines]}
