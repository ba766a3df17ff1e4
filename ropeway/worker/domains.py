"""Failure domains: what of a worker's stores becomes unavailable together, and so shares trips and starts together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..client.queue import Queue
from ..store.contract import Store


class Domain(NamedTuple):
    name: str
    queues: list[Queue]
    stores: dict[int, Store]
    """Handles whose records are in it, by their identity."""


def domains_of(queues: Iterable[Queue]) -> list[Domain]:
    """Most stores are one domain; in a cluster each queue is one, and the records are another."""
    found: dict[str, Domain] = {}

    def named(name: str) -> Domain:
        return found.setdefault(name, Domain(name, [], {}))

    for queue in queues:
        named(queue.store.domain_of(queue.name)).queues.append(queue)
        named(queue.store.domain_of()).stores[id(queue.store)] = queue.store
    return [*found.values()]


async def late_ones(beginnings: Mapping[asyncio.Task[None], Domain], patience: float) -> set[asyncio.Task[None]]:
    """Waits until all have begun; when queues can be served, `patience` seconds longer at most. Answers the rest.

    Raises the error of one that fails.
    """
    pending = {*beginnings}
    timeout = None
    while pending:
        done, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            break
        for task in done:
            task.result()
            if beginnings[task].queues:
                timeout = patience
    return pending
