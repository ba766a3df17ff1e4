"""`ropeway jobs redrive`."""

from __future__ import annotations

import click

from ...client.dead_letters import UNREAD
from ...client.queue import Queue
from ...errors import JobNotFound
from ...showing import plural
from ...store.contract import Store
from ..confirming import confirm
from ..exit_codes import ExitCode
from ..helping import examples
from ..options import json_option, queue_argument, url_option, yes_option
from ..stores import known_queue, on_store
from ..text import as_json as json_text


@click.command(
    epilog=examples(
        "ropeway jobs redrive dead-emails",
        "ropeway jobs redrive dead-emails emails:welcome-42:1900000000000",
        "ropeway jobs redrive dead-emails --limit 100 --yes",
    )
)
@queue_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--limit", type=click.IntRange(1), help="The most letters to send.")
@yes_option
@url_option
@json_option
@on_store()
async def redrive(store: Store, queue: str, ids: tuple[str, ...], limit: int | None, yes: bool, as_json: bool) -> int:
    """Send dead letters in QUEUE back to the queues where they failed: the given ones, or all that are not finished.

    A job that is still there is retried with all its attempts, otherwise it is added again. Its letter is removed.
    """
    found = await known_queue(store, queue)
    if ids:
        if limit is not None:
            raise click.UsageError("give ids or --limit, not both")
        return await _redrive_each(found, ids, as_json=as_json)
    counts = await found.counts()
    most = sum(counts[state] for state in UNREAD)
    if most:
        confirm(f"Send up to {plural(min(most, limit or most), 'dead letter')} of {queue} back", yes=yes)
    _report(queue, await found.redrive(limit=limit), as_json=as_json)
    return ExitCode.OK


async def _redrive_each(queue: Queue, ids: tuple[str, ...], *, as_json: bool) -> int:
    code, sent = ExitCode.OK, 0
    for id in dict.fromkeys(ids):
        job = await queue.get(id)
        if await queue.redrive(id):
            sent += 1
        elif job is None:
            click.echo(f"Error: {JobNotFound(queue.name, id)}", err=True)
            code = ExitCode.NOT_FOUND
        else:
            why = "a worker has it now" if job.snapshot.state == "active" else "it is no dead letter"
            click.echo(f"Error: job {id!r} of {queue.name} was not sent: {why}", err=True)
            code = code or ExitCode.FAILED
    _report(queue.name, sent, as_json=as_json)
    return code


def _report(queue: str, sent: int, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text({"queue": queue, "sent": sent}))
    else:
        click.echo(f"{plural(sent, 'dead letter')} of {queue} sent back")
