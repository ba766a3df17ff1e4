"""`ropeway workers list`."""

from __future__ import annotations

import click

from ...client.workers import WorkerInfo, read_workers
from ...job.instants import moment_of
from ...store.contract import Store
from ..helping import examples
from ..lists import show_list
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..tables import Column
from ..text import age, iso

COLUMNS = (
    Column("worker", is_whole=True),
    Column("name", 60),
    Column("state", is_whole=True),
    Column("running", 50, is_number=True),
    Column("since", 70),
    Column("queues", 40),
)


@click.command("list", epilog=examples("ropeway workers list", "ropeway workers list --queue emails --json"))
@queue_option
@url_option
@json_option
@on_store()
async def list_workers(store: Store, queue: str | None, as_json: bool) -> None:
    """List the workers that run now; workers over HTTP are known by their jobs alone."""
    found = [worker for worker in await read_workers(store) if queue is None or queue in worker.queues]
    found.sort(key=lambda worker: (worker.name, worker.started_at))
    document = {"workers": [document_of(worker) for worker in found]} if as_json else None
    show_list(COLUMNS, [_row(worker) for worker in found], "No worker runs now.", document)


def state_of(worker: WorkerInfo) -> str:
    return "draining" if worker.draining else "paused" if worker.paused else "running"


def document_of(worker: WorkerInfo) -> dict[str, object]:
    return {
        "id": worker.id,
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "state": state_of(worker),
        "queues": worker.queues,
        "handlers": worker.handlers,
        "concurrency": worker.concurrency,
        "running": worker.running,
        "started_at": iso(worker.started_at),
    }


def _row(worker: WorkerInfo) -> list[str]:
    return [
        worker.id,
        "" if worker.name == worker.id else worker.name,
        state_of(worker),
        f"{worker.running} of {worker.concurrency}",
        age(moment_of(worker.started_at)),
        ", ".join(worker.queues),
    ]
