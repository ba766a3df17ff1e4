"""`ropeway webhooks send-again`."""

from __future__ import annotations

import click

from ...client.queue import Queue
from ...errors import JobNotFound, RopewayError
from ...job.states import FINAL
from ...job.webhooks import DELIVERIES
from ...store.contract import Store
from ..exit_codes import ExitCode
from ..helping import examples
from ..options import json_option, url_option
from ..stores import on_store
from ..text import as_json as json_text


@click.command(
    "send-again",
    epilog=examples(
        "ropeway webhooks send-again orders:42:1900000000000:completed",
        "ropeway webhooks list --state failed --json | jq -r '.deliveries[].id' |",
        "  xargs ropeway webhooks send-again",
    ),
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@url_option
@json_option
@on_store()
async def send_again(store: Store, ids: tuple[str, ...], as_json: bool) -> int:
    """Send deliveries again, with the same id and all their attempts; those that wait for a retry, now."""
    deliveries = Queue(DELIVERIES, store=store)
    sent, code = [], ExitCode.OK
    for id in dict.fromkeys(ids):
        try:
            await _send(deliveries, id)
            sent.append(id)
        except RopewayError as error:
            click.echo(f"Error: {error}", err=True)
            code = ExitCode.NOT_FOUND if isinstance(error, JobNotFound) else code or ExitCode.FAILED
    if as_json:
        click.echo(json_text({"sent": sent}))
    else:
        for id in sent:
            click.echo(f"{id} is sent again")
    return code


async def _send(deliveries: Queue, id: str) -> None:
    job = await deliveries.get(id)
    if job is None:
        raise JobNotFound(DELIVERIES, id)
    if job.snapshot.state in FINAL:
        await job.retry(reset=True)
    elif job.snapshot.state == "delayed":
        await job.promote()
    # Otherwise it waits or is under way.
