"""Warnings about job names: no live worker takes them, or the options of their task were left out."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click

from ..client.new_jobs import Call
from ..client.queue import Queue
from ..client.workers import WorkerInfo, read_workers
from .escaping import one_line
from .stores import known_queues, near

_MOST = 5


async def warn_of_unhandled(queue: Queue, added: Iterable[Call], *, with_app: bool) -> None:
    """Checks the live workers. With an app, the queue itself applies the options of its tasks."""
    calls = list({(call.name, *call.options): call for call in added}.values())
    everyone = await read_workers(queue.store)
    workers = [worker for worker in everyone if queue.name in worker.queues]
    if calls and not workers:
        warn(f"no worker runs on queue {queue.name!r} now{await _meant(queue, everyone)}")
        if not with_app:
            warn("added with the options given here: those of a task are known to its app only (--app MODULE:ATTR)")
        return
    warnings = [_unhandled(call.name, workers) for call in calls]
    if not with_app:
        warnings += [_left_out(call, workers) for call in calls]
    for warning in list(dict.fromkeys(filter(None, warnings)))[:_MOST]:
        warn(warning)


async def _meant(queue: Queue, workers: list[WorkerInfo]) -> str:
    """A queue with a similar name, if there is one."""
    others = [name for name in await known_queues(queue.store, workers) if name != queue.name]
    return near(queue.name, close) if (close := get_close_matches(queue.name, others, n=1)) else ""


async def warn_of_unhandled_name(queue: Queue, name: str) -> None:
    """Warns about a setting for a job name that no worker has; not if there are no workers."""
    workers = [worker for worker in await read_workers(queue.store) if queue.name in worker.queues]
    if workers and (warning := _unhandled(name, workers)):
        warn(warning)


def _unhandled(name: str, workers: list[WorkerInfo]) -> str | None:
    if any(worker.handlers is None or name in worker.handlers for worker in workers):
        return None
    handled = {each for worker in workers for each in worker.handlers or ()}
    return f"no worker that runs now has a handler for {name!r}{near(name, sorted(handled))}"


def _left_out(call: Call, workers: list[WorkerInfo]) -> str | None:
    known = {option for worker in workers for option in worker.task_options.get(call.name, ())}
    missing = sorted(known - call.options.keys())
    if not missing:
        return None
    return (
        f"added without the options of task {call.name!r} ({', '.join(missing)}), "
        "which only its app knows: --app MODULE:ATTR takes them"
    )


def warn(text: str) -> None:
    click.echo(f"Warning: {one_line(text)}", err=True)
