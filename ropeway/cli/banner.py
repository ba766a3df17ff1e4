"""The lines that a worker prints when it starts."""

from __future__ import annotations

import click

from .. import __version__
from ..logger import log
from ..worker.worker import Worker
from .escaping import one_line
from .logs import LogFormat
from .sink import tell


def show_banner(worker: Worker, processes: int, log_format: LogFormat) -> None:
    """Store, queues, handlers, concurrency and version, so that a wrong worker is noticed."""
    info = worker.info
    handlers = _handlers(worker)
    stores = list(dict.fromkeys(queue.store.url for queue in worker.queues))
    if log_format == "json":
        facts = {
            "version": __version__,
            "stores": stores,
            "queues": info.queues,
            "handlers": handlers,
            "concurrency": info.concurrency,
            "processes": processes,
        }
        log.info("a worker starts", extra={"facts": facts})
        return
    each = f" in each of {processes} processes" if processes > 1 else ""
    lines = {
        "store": ", ".join(stores),
        "queues": ", ".join(info.queues),
        "handlers": "for every job name" if handlers is None else ", ".join(handlers) or "none",
        "concurrency": f"{info.concurrency}{each}",
    }
    tell(click.style(f"Ropeway {__version__}", bold=True) + f"  {one_line(info.name)}")
    for name, value in lines.items():
        tell(f"  {name:<12} {one_line(value)}")
    tell("  Ctrl-C shuts it down gracefully; twice, hurriedly.")


def _handlers(worker: Worker) -> list[str] | None:
    """The job names it takes, None for all; including the tasks of its queues."""
    own = worker.info.handlers
    tasks = [name for queue in worker.queues for name in queue.tasks]
    return None if own is None else list(dict.fromkeys([*own, *tasks]))
