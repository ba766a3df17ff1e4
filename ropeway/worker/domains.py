"""Failure domains: queues and records that become unavailable together, so they start and make round trips together."""

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
    """Store handles whose records belong to this domain, by `id()`."""


def domains_of(queues: Iterable[Queue]) -> list[Domain]:
    """Groups queues by domain. Most stores are one domain; in a cluster each queue is one, and the records another."""
    found: dict[str, Domain] = {}

    def named(name: str) -> Domain:
        return found.setdefault(name, Domain(name, [], {}))

    for queue in queues:
        named(queue.store.domain_of(queue.name)).queues.append(queue)
        named(queue.store.domain_of()).stores[id(queue.store)] = queue.store
    return [*found.values()]


async def late_ones(beginnings: Mapping[asyncio.Task[None], Domain], patience: float) -> set[asyncio.Task[None]]:
    """Waits until all have started; once a queue can be served, at most `patience` seconds more. Answers the rest.

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
