"""`ropeway events`: the event stream of a queue."""

from __future__ import annotations

import click

from ..client.queue import Queue
from ..job.events import EVENT_NAMES, Event
from ..store.contract import Store
from .escaping import one_line
from .event_details import event_details
from .helping import examples
from .ids import is_end_of, is_short
from .options import json_option, queue_argument, url_option
from .stores import known_queue, on_store
from .tables import STATE_COLOURS
from .text import as_json as json_text
from .text import instant_time, iso


def _complete_name(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in EVENT_NAMES if name.startswith(incomplete)]


@click.command(
    epilog=examples(
        "ropeway events emails",
        "ropeway events emails --follow --name failed --name stalled",
        "ropeway events emails --follow --json --after 4711/0",
    )
)
@queue_argument
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--after", metavar="ID", help="Begin behind this event; or 'start', the oldest kept, or 'now'.")
@click.option(
    "--name", "names", multiple=True, metavar="NAME", shell_complete=_complete_name, help="Only these; your own too."
)
@click.option("--job", "job_id", metavar="ID", help="Only those of one job; its last letters will do.")
@url_option
@json_option
@on_store()
async def events(
    store: Store,
    queue: str,
    follow: bool,
    after: str | None,
    names: tuple[str, ...],
    job_id: str | None,
    as_json: bool,
) -> None:
    """Show what happened in a queue, and what happens.

    About 10,000 events are kept. Without --follow it shows them from the oldest on; with it, what happens from now on.
    JSON is one event a line; its id is what --after takes.
    """
    found = Queue(queue, store=store)
    if not await _has_events(found):
        await known_queue(store, queue)
    for name in names:
        if name not in EVENT_NAMES:
            click.echo(f"{one_line(name)!r} is no event of the queue's own: what was published so is shown", err=True)
    async for event in found.events(after or ("now" if follow else "start"), follow=follow):
        if (names and event.name not in names) or (job_id and not _is_of(event, job_id)):
            continue
        click.echo(json_text(event_document(event)) if as_json else event_line(event))


def _is_of(event: Event, job_id: str) -> bool:
    """True if the event belongs to the job, given by its id or the last characters of it."""
    own = event.job_id or ""
    return own == job_id or (is_short(job_id) and is_end_of(job_id, own))


async def _has_events(queue: Queue) -> bool:
    """True if the queue has events, as it may without ever having had a job."""
    return bool((await queue.store.events(queue.name, limit=1)).entries)


def event_document(event: Event) -> dict[str, object]:
    return {
        "id": event.id,
        "queue": event.queue,
        "name": event.name,
        "job_id": event.job_id,
        "at": iso(event.at),
        "data": event.data,
    }


def event_line(event: Event) -> str:
    name = click.style(f"{one_line(event.name):<17}", fg=STATE_COLOURS.get(event.name))
    details = event_details(event.name, event.data)
    return f"{instant_time(event.at)}  {name}  {event.job_id or '-':<36}  {details}".rstrip()
