"""Warnings about job names: no live worker takes them, or the options of their task were left out."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click

from ..client.new_jobs import Call
from ..client.queue import Queue
from ..client.workers import WorkerInfo, handled_names, known_queues, read_workers
from ..errors import StoreRefused
from .escaping import one_line
from .stores import near

_MOST = 5


async def warn_of_unhandled(queue: Queue, added: Iterable[Call], *, with_app: bool) -> None:
    """Checks the live workers. With an app, the queue itself applies the options of its tasks."""
    calls = list({(call.name, *call.options): call for call in added}.values())
    everyone = await read_workers(queue.store)
    workers = [worker for worker in everyone if queue.name in worker.queues]
    if calls and not workers:
        warn(f"no worker runs on queue {queue.name!r} of {queue.store.url} now{await _meant(queue, everyone)}")
        return
    warnings = [_unhandled(queue.name, call.name, everyone) for call in calls]
    if not with_app:
        warnings += [_left_out(queue.name, call, workers) for call in calls]
    for warning in list(dict.fromkeys(filter(None, warnings)))[:_MOST]:
        warn(warning)


async def _meant(queue: Queue, workers: list[WorkerInfo]) -> str:
    """A queue with a similar name, if there is one, and if the caller may list them."""
    try:
        others = [name for name in await known_queues(queue.store, workers) if name != queue.name]
    except StoreRefused:
        return ""
    return near(queue.name, close) if (close := get_close_matches(queue.name, others, n=1)) else ""


async def warn_of_unhandled_name(queue: Queue, name: str) -> None:
    """For a setting of one name, which may be misspelt; without workers nobody knows."""
    workers = await read_workers(queue.store)
    if any(queue.name in worker.queues for worker in workers) and (warning := _unhandled(queue.name, name, workers)):
        warn(warning)


def _unhandled(queue: str, name: str, workers: list[WorkerInfo]) -> str | None:
    """Names another queue whose workers have that very name, before names that are only similar."""
    if any(worker.handles(queue, name) for worker in workers):
        return None
    elsewhere = sorted(
        {each for worker in workers for each in worker.queues if name in (worker.handlers.get(each) or ())}
    )
    hint = f"; queue {elsewhere[0]!r} has it" if elsewhere else near(name, handled_names(workers, queue))
    return f"no worker runs {name!r} in queue {queue!r}{hint}"


def _left_out(queue: str, call: Call, workers: list[WorkerInfo]) -> str | None:
    known = {option for worker in workers for option in worker.task_options.get(queue, {}).get(call.name, ())}
    missing = sorted(known - call.options.keys())
    if not missing:
        return None
    own = ", ".join(missing)
    return f"the own options of task {call.name!r} ({own}) were not used; add --app app:queue to use them"


def warn(text: str) -> None:
    click.echo(f"Warning: {one_line(text)}", err=True)
