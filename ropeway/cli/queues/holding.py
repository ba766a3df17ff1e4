"""`ropeway queues pause`, `resume` and `concurrency`."""

from __future__ import annotations

import click

from ...client.queue import Queue
from ...job.names import job_name
from ...job.numbers import whole
from ...showing import plural
from ...store.contract import Store
from ..completing import complete_name
from ..escaping import one_line
from ..helping import examples
from ..options import json_option, queue_argument, url_option
from ..stores import known_or_new_queue, known_queue, near, on_store
from ..text import as_json as json_text
from ..unhandled import warn, warn_of_unhandled_name

_name_option = click.option("--name", metavar="NAME", shell_complete=complete_name, help="Only the jobs of this name.")
_create_option = click.option("--create", is_flag=True, help="Also for a queue that has no jobs and no workers yet.")


@click.command(epilog=examples("ropeway queues pause emails", "ropeway queues pause emails --name send_newsletter"))
@queue_argument
@_name_option
@_create_option
@url_option
@json_option
@on_store(make="create")
async def pause(store: Store, queue: str, name: str | None, create: bool, as_json: bool) -> None:
    """Let no worker claim from a queue; what runs goes on."""
    if name is not None:
        # Before the store is used, which would create it.
        job_name(name)
    paused = await known_or_new_queue(store, queue, create=create)
    await paused.pause(name)
    await _report(paused, "paused", name, as_json=as_json)
    if name is not None:
        await warn_of_unhandled_name(paused, name)


@click.command(epilog=examples("ropeway queues resume emails", "ropeway queues resume emails --name send_newsletter"))
@queue_argument
@_name_option
@url_option
@json_option
@on_store()
async def resume(store: Store, queue: str, name: str | None, as_json: bool) -> None:
    """End a pause, of the whole queue or of one job name."""
    found = await known_queue(store, queue)
    held = (await found.settings()).paused_names
    await found.resume(name)
    await _report(found, "resumed", name, as_json=as_json)
    if name is not None and name not in held:
        warn(f"jobs named {name!r} were not paused{near(name, held)}")


def _limit(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return whole("LIMIT", int(text), 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no limit: use a whole number from 1, or none") from None


@click.command(epilog=examples("ropeway queues concurrency emails 20", "ropeway queues concurrency emails none"))
@queue_argument
@click.argument("limit", type=_limit)
@_create_option
@url_option
@json_option
@on_store(make="create")
async def concurrency(store: Store, queue: str, limit: int | None, create: bool, as_json: bool) -> None:
    """Limit how many jobs of a queue run at once, over all workers; what runs goes on."""
    limited = await known_or_new_queue(store, queue, create=create)
    await limited.set_global_concurrency(limit)
    if as_json:
        click.echo(json_text({"queue": queue, "max_global_concurrency": limit}))
    else:
        number = "any number of jobs" if limit is None else f"at most {plural(limit, 'job')}"
        click.echo(f"{queue} runs {number} at once")


async def _report(queue: Queue, what: str, name: str | None, *, as_json: bool) -> None:
    settings = await queue.settings()
    if as_json:
        document = {"queue": queue.name, "paused": settings.paused, "paused_names": settings.paused_names}
        click.echo(json_text(document))
        return
    click.echo(f"{queue.name} is {what}" + (f" for {one_line(name)}" if name else ""))
    if what == "resumed" and name and settings.paused:
        click.echo(f"The whole queue is still paused: ropeway queues resume {queue.name}", err=True)
