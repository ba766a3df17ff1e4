"""`ropeway jobs list`."""

from __future__ import annotations

from typing import Final

import click

from ...client.snapshot import Snapshot, attempts_of, is_due_when_woken
from ...client.workers import known_queues
from ...job.states import FINAL, State
from ...store.contract import Store
from ...store.values import BATCH
from ..completing import complete_name
from ..helping import examples
from ..ids import is_narrow, short_id
from ..options import json_option, queue_option, state_option, url_option
from ..stores import known_queue, on_store
from ..tables import Column, Wrapped, room_in_terminal, show_table
from ..text import age, shown
from ..text import as_json as json_text

_STATES: Final[tuple[State, ...]] = ("active", "waiting", "waiting-children", "delayed", *FINAL)
"""The order of states in the list: unfinished jobs first."""


@click.command(
    "list",
    epilog=examples(
        "ropeway jobs list --queue emails",
        "ropeway jobs list --state failed --state cancelled --limit 50",
        "ropeway jobs list --name send_email --json | jq -r '.jobs[].id'",
    ),
)
@queue_option
@state_option("Only jobs of this state; can be repeated.", multiple=True)
@click.option("--name", metavar="NAME", shell_complete=complete_name, help="Only jobs of this name.")
@click.option("--tag", metavar="TAG", help="Only jobs that have this tag.")
@click.option("--stale", is_flag=True, help="Only finished jobs that are stale by the queue's retention.")
@click.option("--limit", type=click.IntRange(1, BATCH), default=20, show_default=True, help="The most jobs to list.")
@click.option("--after", metavar="CURSOR", help="Go on behind a page that said there are more.")
@click.option("--oldest-first", is_flag=True, help="The other way round.")
@url_option
@json_option
@on_store()
async def list_jobs(  # noqa: PLR0913 - each is an option
    store: Store,
    queue: str | None,
    state: tuple[State, ...],
    name: str | None,
    tag: str | None,
    *,
    stale: bool,
    limit: int,
    after: str | None,
    oldest_first: bool,
    as_json: bool,
) -> None:
    """List jobs: queue by queue, state by state, the newest of each first."""
    if after and not queue:
        raise click.UsageError("--after goes on in one queue: say which with --queue")
    # A page that is turned round has its states turned round too.
    states = _STATES if oldest_first else _STATES[::-1]
    names = [queue] if queue else await known_queues(store)
    found: list[Snapshot] = []
    cursor, more = None, False
    for queue_name in names:
        page = await (await known_queue(store, queue_name)).find(
            *(state or states),
            name=name,
            tag=tag,
            stale=stale,
            limit=limit - len(found),
            after=after,
            newest_first=not oldest_first,
        )
        found += [job.snapshot for job in page]
        cursor, more = page.next, page.next is not None
        if len(found) == limit:
            more = more or queue_name != names[-1]
            break
    if as_json:
        click.echo(json_text({"jobs": found, "next": cursor if queue else None, "more": more}))
        return
    _show(found, with_queue=queue is None, with_state=len(state) != 1)
    if more:
        how = f"--after '{cursor}'" if queue else "--queue QUEUE to page through one, or a larger --limit"
        click.echo(f"There are more: {how}", err=True)


def _show(jobs: list[Snapshot], *, with_queue: bool, with_state: bool) -> None:
    if not jobs:
        click.echo("No jobs match.", err=True)
        return
    # A value that was filtered by needs no column.
    columns = [
        Column("id", is_whole=True),
        *([Column("queue", 60)] if with_queue else []),
        Column("name"),
        *([Column("state")] if with_state else []),
        Column("tries", 60, is_number=True),
        Column("age", 50, is_number=True),
        Column("about", is_note=True),
    ]
    shown_id = short_id if is_narrow(room_in_terminal()) else str
    rows = [
        [
            shown_id(job.id),
            *([job.queue] if with_queue else []),
            job.name,
            *([job.state] if with_state else []),
            f"{attempts_of(job)}/{job.attempts}",
            age(job.created_at),
            _about(job),
        ]
        for job in jobs
    ]
    show_table(columns, rows)


def _about(job: Snapshot) -> str:
    """The most relevant fact about a job in its state."""
    match job.state:
        case "failed" | "cancelled":
            return Wrapped(job.reason or "")
        case "completed":
            return "" if job.result is None else shown(job.result)
        case "delayed":
            return "due when it is woken" if is_due_when_woken(job) else f"due {age(job.due_at)}"
        case "active":
            done = "" if job.progress is None else f" {shown(job.progress)}"
            return f"{job.worker or ''}{done}"
        case "waiting-children":
            return "1 child" if job.children == 1 else f"{job.children:,} children"
    return _about_waiting(job)


def _about_waiting(job: Snapshot) -> str:
    if job.origin is not None:
        return Wrapped(f"from {job.origin.queue}: {job.origin.reason or job.origin.event}")
    left = age(job.start_by)
    # A retry by hand gives it time: an instant that has passed means nothing then.
    return f"expires {left}  {shown(job.data)}" if left.startswith("+") else shown(job.data)
