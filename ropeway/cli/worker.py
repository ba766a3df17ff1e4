"""`ropeway worker`: runs the jobs of an app."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from ..worker.options import MOST_CONCURRENCY
from ..worker.worker import Worker
from . import loops
from .banner import show_banner
from .exit_codes import ExitCode
from .helping import examples
from .loading import load_worker, narrow
from .logs import LEVELS, LogFormat, set_up_logs
from .loops import LOOPS, LoopName
from .options import FOLDER, app_dir_option, url_option
from .reloading import Sources
from .stores import close_within, refuse_memory, set_default_store
from .supervising import Supervisor, command_line, heed_parent

LEAST_TO_CLOSE: Final = 0.7
"""Seconds to close the stores in, even if nothing is left of the worker's grace."""


class WorkerCommand(NamedTuple):
    target: str
    app_dir: Path
    concurrency: int | None
    processes: int
    queues: str
    reload: bool
    reload_dirs: tuple[Path, ...]
    log_format: LogFormat
    log_level: str
    loop: LoopName
    webhooks: bool | None
    url: str | None
    supervised: str
    """The process's number and their count, as in `1/4`; empty for a single one."""

    def for_child(self) -> list[str]:
        """The arguments of a process that a supervisor starts; the store's URL is in its environment."""
        options = {
            "--app-dir": self.app_dir,
            "--concurrency": self.concurrency,
            "--queues": self.queues,
            "--log-format": self.log_format,
            "--log-level": self.log_level,
            "--loop": self.loop,
        }
        given = [str(part) for option, value in options.items() if value for part in (option, value)]
        webhooks = {None: [], True: ["--webhooks"], False: ["--no-webhooks"]}[self.webhooks]
        return ["worker", self.target, *given, *webhooks]


@click.command(
    epilog=examples(
        "ropeway worker app:queue",
        "ropeway worker shop.jobs:worker --concurrency 50 --processes 4",
        "ropeway worker app:make_queues --queues emails,images",
        "ropeway worker app:queue --reload --log-level debug",
    )
)
@click.argument("target", metavar="MODULE:ATTR")
@app_dir_option
@click.option("--concurrency", "-c", type=click.IntRange(1, MOST_CONCURRENCY), help="Jobs at once, in each process.")
@click.option("--processes", "-p", type=click.IntRange(1, 256), default=1, show_default=True, help="Worker processes.")
@click.option("--queues", default="", metavar="A,B", help="Only these queues of the app.")
@click.option("--reload", is_flag=True, help="Restart when a .py file of the app changes.")
@click.option("--reload-dir", "reload_dirs", type=FOLDER, multiple=True, help="What to watch; can be repeated.")
@click.option("--log-format", type=click.Choice(["pretty", "json"]), default="pretty", show_default=True)
@click.option("--json", "log_format", flag_value="json", help="The same as --log-format json.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option(
    "--loop", type=click.Choice(LOOPS), default="auto", show_default=True, help="auto: uvloop, if it is installed."
)
@click.option("--webhooks/--no-webhooks", default=None, help="Deliver webhooks always or never; by default if needed.")
@click.option("--supervised", default="", hidden=True)
@url_option
def worker(**given: Any) -> int:
    """Run the jobs of an app's queues.

    ATTR is a Worker, a Queue, a list of Queues, or a function without arguments that makes one of them; queues run
    their tasks. --url is for queues that name no store of their own; a relative file is in --app-dir, and so is the
    default, ropeway.db. Ctrl-C or SIGTERM lets running jobs end; a second one hurries.
    """
    orders = WorkerCommand(**given)
    loops.check(orders.loop)
    set_up_logs(orders.log_format, orders.log_level, _mark(orders.supervised))
    set_default_store(orders.url)
    if orders.supervised:
        heed_parent()
    elif orders.reload or orders.processes > 1:
        return asyncio.run(_supervise(orders))
    return _work(orders)


async def _supervise(orders: WorkerCommand) -> int:
    sources = Sources(orders.reload_dirs or [orders.app_dir]) if orders.reload else None
    return await Supervisor(command_line(orders.for_child()), orders.processes, sources).run()


def _work(orders: WorkerCommand) -> int:
    loaded = load_worker(orders.target, orders.app_dir)
    if names := [name.strip() for name in orders.queues.split(",") if name.strip()]:
        narrow(loaded, names)
    if orders.concurrency is not None:
        loaded.concurrency = orders.concurrency
    if orders.webhooks is not None:
        loaded.webhooks = orders.webhooks
    number, _, processes = orders.supervised.partition("/")
    if processes not in ("", "1"):
        for queue in loaded.queues:
            refuse_memory(queue.store.url)
    if number in ("", "1"):
        show_banner(loaded, int(processes or 1), orders.log_format)
    loops.run(_run(loaded), orders.loop)
    # A supervisor starts what ends by itself again, but not this.
    return ExitCode.DRAINED if orders.supervised and loaded.drained else ExitCode.OK


async def _run(worker: Worker) -> None:
    try:
        await worker.run()
    finally:
        stores = {id(queue.store): queue.store for queue in worker.queues}.values()
        await asyncio.gather(*(close_within(max(worker.grace_left, LEAST_TO_CLOSE), store) for store in stores))


def _mark(supervised: str) -> str:
    number, _, processes = supervised.partition("/")
    return number if processes not in ("", "1") else ""
