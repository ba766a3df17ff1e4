"""An app, as commands see it that add jobs to one of its queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from ..client.queue import Queue
from .loading import load_worker, narrow
from .stores import near


class App(NamedTuple):
    target: str
    queue: Queue
    handled: tuple[str, ...] | None
    """Job names for which it has handlers, besides the queue's tasks; None for every name."""
    queues: Mapping[str, App] = {}
    """The same for each of its queues, by name."""

    def check(self, names: Iterable[str]) -> None:
        """Refuses a job name that the app cannot run: it is misspelt, or belongs to another app."""
        if self.handled is None:
            return
        known = [*self.queue.tasks, *self.queue.pipelines, *self.handled]
        for name in names:
            if name not in known:
                raise click.UsageError(
                    f"{self.target} has no task {name!r} in queue {self.queue.name!r}{near(name, known)}"
                )


def load_app(target: str, app_dir: Path, queue: str) -> App:
    worker = load_worker(target, app_dir)
    queues = {each.name: App(target, each, worker.info.handlers[each.name]) for each in worker.queues}
    narrow(worker, [queue])
    return queues[queue]._replace(queues=queues)
