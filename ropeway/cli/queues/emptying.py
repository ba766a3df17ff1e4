"""`ropeway queues clean`, `drain` and `obliterate`: removing many jobs at once, after a confirmation."""

from __future__ import annotations

import click

from ...errors import QueueBusy
from ...job.durations import Duration
from ...job.states import State
from ...showing import plural
from ...store.contract import Store
from ..confirming import confirm
from ..helping import examples
from ..options import duration, json_option, queue_argument, state_option, url_option, yes_option
from ..stores import known_queue, on_store
from ..text import as_json as json_text


@click.command(
    epilog=examples(
        "ropeway queues clean emails --older-than 1h",
        "ropeway queues clean emails --state failed --older-than 30d --yes",
    )
)
@queue_argument
@state_option("The jobs to remove.", default="completed", show_default=True)
@click.option(
    "--older-than",
    type=duration,
    default="0",
    help="Only jobs that finished (or were added) that long ago; all without it.",
)
@click.option("--limit", type=click.IntRange(1), help="The most jobs to remove.")
@yes_option
@url_option
@json_option
@on_store()
async def clean(
    store: Store, queue: str, state: State, older_than: Duration, limit: int | None, yes: bool, as_json: bool
) -> None:
    """Remove jobs of one state: the completed ones, of whatever age, unless told otherwise."""
    found = await known_queue(store, queue)
    most = (await found.counts()).get(state, 0)
    old = f" older than {older_than}" if older_than else ""
    confirm(f"Remove up to {plural(min(most, limit or most), f'{state} job')}{old} from {queue}", yes=yes)
    _report(queue, len(await found.clean(older_than, state, limit=limit)), as_json=as_json)


@click.command(epilog=examples("ropeway queues drain emails", "ropeway queues drain emails --delayed --yes"))
@queue_argument
@click.option("--delayed", is_flag=True, help="Remove delayed jobs too.")
@yes_option
@url_option
@json_option
@on_store()
async def drain(store: Store, queue: str, delayed: bool, yes: bool, as_json: bool) -> None:
    """Remove all jobs that wait; running and finished ones stay."""
    found = await known_queue(store, queue)
    counts = await found.counts()
    number = counts["waiting"] + (counts["delayed"] if delayed else 0)
    kind = "waiting or delayed job" if delayed else "waiting job"
    confirm(f"Remove {plural(number, kind)} from {queue}", yes=yes)
    _report(queue, await found.drain(delayed=delayed), as_json=as_json)


@click.command(epilog=examples("ropeway queues obliterate emails", "ropeway queues obliterate emails --force --yes"))
@queue_argument
@click.option("--force", is_flag=True, help="Even while jobs are active; their results are refused.")
@yes_option
@url_option
@json_option
@on_store()
async def obliterate(store: Store, queue: str, force: bool, yes: bool, as_json: bool) -> None:
    """Remove a queue and all that is in it: jobs, schedules, settings, events, metrics."""
    found = await known_queue(store, queue)
    number = sum((await found.counts()).values())
    confirm(f"Remove the queue {queue} with {plural(number, 'job')}, its schedules, settings and events", yes=yes)
    try:
        removed = await found.obliterate(force=force)
    except QueueBusy as busy:
        active = plural(busy.active, "active job")
        raise click.ClickException(
            f"{queue} has {active}, and is now paused: wait until they end, or add --force"
        ) from busy
    _report(queue, removed, as_json=as_json)


def _report(queue: str, removed: int, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text({"queue": queue, "removed": removed}))
    else:
        click.echo(f"{plural(removed, 'job')} removed from {queue}")
