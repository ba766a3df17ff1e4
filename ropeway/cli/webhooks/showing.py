"""`ropeway webhooks show`."""

from __future__ import annotations

import click

from ...client.queue import Queue
from ...errors import JobNotFound
from ...job.webhooks import DELIVERIES
from ...store.contract import Store
from ..escaping import one_line
from ..helping import examples
from ..jobs.job_log import log_document, log_line
from ..options import json_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from ..text import clock_time


@click.command(epilog=examples("ropeway webhooks show orders:42:1900000000000:completed"))
@click.argument("id")
@url_option
@json_option
@on_store()
async def show(store: Store, id: str, as_json: bool) -> None:
    """Show a delivery: the job it reports, where it goes, and each attempt with its answer."""
    deliveries = Queue(DELIVERIES, store=store)
    job = await deliveries.get(id)
    if job is None:
        raise JobNotFound(DELIVERIES, id)
    delivery, history = job.snapshot, await deliveries.history(id)
    if as_json:
        click.echo(json_text({"delivery": delivery, **log_document(history.log)}))
        return
    origin = delivery.origin
    facts = {
        "job": "" if origin is None else f"{origin.queue}/{origin.id} · {origin.event}",
        "to": one_line(delivery.webhook or ""),
        "state": f"{delivery.state}{f' · {one_line(delivery.reason)}' if delivery.reason else ''}",
        "attempts": f"{delivery.attempts_made} of {delivery.attempts} failed",
        "due": clock_time(delivery.due_at),
        "finished": clock_time(delivery.finished_at),
    }
    click.echo(f"{click.style(one_line(delivery.name), bold=True)}  {delivery.id}")
    for name, value in facts.items():
        if value:
            click.echo(f"  {name:<13} {value}")
    for line in history.log:
        click.echo(f"  {log_line(line)}")
