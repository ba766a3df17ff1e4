"""`ropeway workers pause`, `resume` and `drain`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import click

from ...client.workers import Order, WorkerInfo, WorkerOrder, order_worker, read_worker, read_workers
from ...errors import WorkerNotFound
from ...showing import plural
from ...store.contract import Store
from ..completing import asked
from ..escaping import one_line
from ..exit_codes import ExitCode
from ..helping import examples
from ..options import json_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from .listing import document_of

PATIENCE: Final = 30.0
"""Seconds in which a worker that runs should have obeyed."""
LOOK_EVERY: Final = 0.25


def _complete_worker(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    async def ids(store: Store) -> list[str]:
        return sorted(worker.id for worker in await read_workers(store))

    return asked(context, ids, incomplete)


def _ordering(order: Order, summary: str) -> click.Command:
    shown = examples(f"ropeway workers {order} web-1:4711:0a1b2c", f"ropeway workers {order} 0a1b2c")

    @click.command(order, help=summary, epilog=shown)
    @click.argument("worker", shell_complete=_complete_worker)
    @url_option
    @json_option
    @on_store()
    async def command(store: Store, worker: str, as_json: bool) -> int:
        found = await _located(store, worker)
        given = await order_worker(store, found, order)
        latest = await _once_obeyed(store, given, found)
        has_obeyed = given.is_done(latest) if latest is not None else order == "drain"
        if as_json:
            click.echo(json_text({"order": order, "obeyed": has_obeyed, "worker": latest and document_of(latest)}))
        else:
            click.echo(_report(found.id, order, latest, has_obeyed=has_obeyed), err=not has_obeyed)
        return ExitCode.OK if has_obeyed else ExitCode.NOT_FOUND if latest is None else ExitCode.TIMEOUT

    return command


async def _located(store: Store, given: str) -> WorkerInfo:
    """By its id, the end of it, or a name that no other has."""
    workers = await read_workers(store)
    tests: tuple[Callable[[WorkerInfo], Any], ...] = (
        lambda worker: worker.id == given,
        lambda worker: worker.name == given,
        lambda worker: worker.id.rpartition(":")[2] == given,
    )
    for test in tests:
        fitting = [worker for worker in workers if test(worker)]
        if len(fitting) > 1:
            ids = ", ".join(sorted(one_line(worker.id) for worker in fitting))
            raise click.UsageError(f"{plural(len(fitting), 'worker')} are named {one_line(given)}: use an id, of {ids}")
        if fitting:
            return fitting[0]
    raise WorkerNotFound(given)


async def _once_obeyed(store: Store, order: WorkerOrder, worker: WorkerInfo) -> WorkerInfo | None:
    """The worker once it has obeyed, or as it is if it does not in time; None if it has ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while not order.is_done(worker):
                await asyncio.sleep(LOOK_EVERY)
                try:
                    worker = await read_worker(store, worker.id)
                except WorkerNotFound:
                    return None
    return worker


def _report(id: str, order: Order, worker: WorkerInfo | None, *, has_obeyed: bool) -> str:
    if worker is None:
        return f"{one_line(id)} has ended"
    if not has_obeyed:
        return f"{one_line(id)} has not answered in {PATIENCE:.0f} s: does it still run?"
    left = f": it ends with its {plural(worker.running, 'job')}" if worker.running else ": it ends now"
    effects = {"pause": " is paused", "resume": " goes on", "drain": f" drains{left}"}
    return f"{one_line(id)}{effects[order]}"


pause = _ordering("pause", "Let a worker claim no more; what it runs goes on.")
resume = _ordering("resume", "End the pause of a worker, or its draining if it has not ended.")
drain = _ordering("drain", "Let a worker claim no more, finish its jobs, and end with exit code 0.")
