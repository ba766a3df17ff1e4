"""Shell completions of queue, job and event names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import click

from ..client.workers import handled_names, known_queues, read_workers
from ..errors import RopewayError
from ..job.states import STATES
from ..store.contract import Store
from .stores import opened


def complete_queue(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return asked(context, known_queues, incomplete)


def complete_name(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Job names for which workers of the queue (or of all queues) have handlers."""
    queue = context.params.get("queue")

    async def handled(store: Store) -> list[str]:
        workers = await read_workers(store)
        queues = {queue} if queue else {each for worker in workers for each in worker.queues}
        return sorted({name for each in queues for name in handled_names(workers, each)})

    return asked(context, handled, incomplete)


def asked(
    context: click.Context, question: Callable[[Store], Coroutine[Any, Any, list[str]]], incomplete: str
) -> list[str]:
    """Completions from the store; none if it cannot be read, because errors would disturb the prompt."""

    async def ask() -> list[str]:
        async with opened(context.params.get("url")) as store:
            return await question(store)

    try:
        return [name for name in asyncio.run(ask()) if name.startswith(incomplete)]
    except (RopewayError, OSError):
        return []


def complete_state(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [state for state in STATES if state.startswith(incomplete)]
