"""The lines that a worker prints when it starts."""

from __future__ import annotations

import click

from .. import __version__
from ..logger import log
from ..worker.timing import in_words
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
        "handlers": _handlers_line(handlers),
        "concurrency": f"{info.concurrency}{each}",
    }
    tell(click.style(f"Ropeway {__version__}", bold=True) + f"  {one_line(info.name)}")
    for name, value in lines.items():
        tell(f"  {name:<12} {one_line(value)}")
    tell(f"  Ctrl-C: let running jobs finish ({in_words(worker.grace)}). Ctrl-C again: hand them back now.")


def _handlers(worker: Worker) -> dict[str, list[str] | None]:
    """By queue, the job names it takes, None for all; the tasks of its queues are taken when it starts."""
    own = worker.info.handlers
    return {
        queue.name: None
        if (names := own[queue.name]) is None
        else list(dict.fromkeys([*names, *queue.tasks, *queue.pipelines]))
        for queue in worker.queues
    }


def _handlers_line(handlers: dict[str, list[str] | None]) -> str:
    """Says the queues only where they differ."""
    by_queue = {
        queue: "for every job name" if names is None else ", ".join(names) or "none"
        for queue, names in handlers.items()
    }
    if len(set(by_queue.values())) == 1:
        return next(iter(by_queue.values()))
    return "; ".join(f"{queue}: {names}" for queue, names in by_queue.items())
