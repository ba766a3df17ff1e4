"""`ropeway webhooks list`."""

from __future__ import annotations

from typing import Final

import click

from ...client.queue import Queue
from ...client.snapshot import Snapshot, attempts_of
from ...job.states import STATES, State
from ...job.webhooks import DELIVERIES
from ...store.contract import Store
from ...store.values import BATCH
from ...webhooks.records import DisabledUrl, disabled_urls
from ..escaping import one_line
from ..helping import examples
from ..lists import show_list
from ..options import json_option, queue_option, state_option, url_option
from ..stores import on_store
from ..tables import Column, Wrapped
from ..text import age

_COLUMNS: Final = (
    Column("id", is_whole=True),
    Column("job"),
    Column("state"),
    Column("tries", 60, is_number=True),
    Column("age", 50, is_number=True),
    Column("about", is_note=True),
)


@click.command(
    "list",
    epilog=examples(
        "ropeway webhooks list",
        "ropeway webhooks list --state failed --queue orders",
        "ropeway webhooks list --disabled",
    ),
)
@queue_option
@state_option("Only deliveries of this state; can be repeated.", multiple=True)
@click.option("--limit", type=click.IntRange(1, BATCH), default=20, show_default=True, help="The most to list.")
@click.option("--disabled", is_flag=True, help="List the URLs that answered 410 instead.")
@url_option
@json_option
@on_store()
async def list_deliveries(
    store: Store, queue: str | None, state: tuple[State, ...], *, limit: int, disabled: bool, as_json: bool
) -> None:
    """List deliveries of webhooks, the newest of each state first. --queue is that of the jobs they report."""
    if disabled:
        _show_disabled([each for each in await disabled_urls(store) if queue in (None, each.queue)], as_json=as_json)
        return
    found = await _find(Queue(DELIVERIES, store=store), state or STATES, queue, limit)
    show_list(
        _COLUMNS, [_row(each) for each in found], "No deliveries match.", {"deliveries": found} if as_json else None
    )


async def _find(deliveries: Queue, states: tuple[State, ...], queue: str | None, limit: int) -> list[Snapshot]:
    found: list[Snapshot] = []
    after = None
    while len(found) < limit:
        page = await deliveries.find(*states, limit=BATCH if queue else limit, after=after, newest_first=True)
        found += [job.snapshot for job in page if queue is None or _queue_of(job.snapshot) == queue]
        after = page.next
        if after is None:
            break
    return found[:limit]


def _queue_of(delivery: Snapshot) -> str:
    return "" if delivery.origin is None else delivery.origin.queue


def _row(delivery: Snapshot) -> list[str]:
    return [
        delivery.id,
        delivery.name,
        delivery.state,
        f"{attempts_of(delivery)}/{delivery.attempts}",
        age(delivery.created_at),
        Wrapped(_about(delivery)),
    ]


def _about(delivery: Snapshot) -> str:
    why = f"{delivery.reason} · " if delivery.reason and delivery.state != "completed" else ""
    when = f"due {age(delivery.due_at)} · " if delivery.state == "delayed" else ""
    return one_line(f"{when}{why}{delivery.webhook or ''}")


def _show_disabled(disabled: list[DisabledUrl], *, as_json: bool) -> None:
    rows = [[each.queue, one_line(each.url)] for each in disabled]
    columns = [Column("queue"), Column("url", is_whole=True)]
    show_list(columns, rows, "No URL is disabled.", {"disabled": disabled} if as_json else None)
