"""`ropeway queues pause` and `resume`."""

from __future__ import annotations

import click

from ...client.queue import Queue
from ...job.names import job_name
from ...store.contract import Store
from ..completing import complete_name
from ..escaping import one_line
from ..helping import examples
from ..options import json_option, queue_argument, url_option
from ..stores import known_queue, known_queues, near, on_store
from ..text import as_json as json_text

_name_option = click.option("--name", metavar="NAME", shell_complete=complete_name, help="Only the jobs of this name.")


@click.command(epilog=examples("ropeway queues pause emails", "ropeway queues pause emails --name send-newsletter"))
@queue_argument
@_name_option
@url_option
@json_option
@on_store(make=True)
async def pause(store: Store, queue: str, name: str | None, as_json: bool) -> None:
    """Let no worker claim from a queue; what runs goes on.

    A queue may be paused before its first job is there.
    """
    paused = Queue(queue, store=store)
    if name is not None:
        # Before the store is asked, and made by it.
        job_name(name)
    known = await known_queues(store)
    await paused.pause(name)
    await _report(paused, "paused", name, as_json=as_json)
    if queue not in known:
        # A pause that was misspelt would stop nobody.
        click.echo(f"It is new in {store.url}{near(queue, known) if known else ''}", err=True)


@click.command(epilog=examples("ropeway queues resume emails", "ropeway queues resume emails --name send-newsletter"))
@queue_argument
@_name_option
@url_option
@json_option
@on_store()
async def resume(store: Store, queue: str, name: str | None, as_json: bool) -> None:
    """End a pause, of the whole queue or of one job name."""
    found = await known_queue(store, queue)
    await found.resume(name)
    await _report(found, "resumed", name, as_json=as_json)


async def _report(queue: Queue, what: str, name: str | None, *, as_json: bool) -> None:
    settings = await queue.settings()
    if as_json:
        document = {"queue": queue.name, "paused": settings.paused, "paused_names": settings.paused_names}
        click.echo(json_text(document))
        return
    click.echo(f"{queue.name} is {what}" + (f" for {one_line(name)}" if name else ""))
    if what == "resumed" and name and settings.paused:
        click.echo(f"The whole queue is still paused: ropeway queues resume {queue.name}", err=True)
