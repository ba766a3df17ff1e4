"""Following a flow: it is read again whenever one of its jobs changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from ...client.flow_tree import FlowNode
from ...client.queue import Queue
from ...errors import JobNotFound
from ...job.states import FINAL

REST: Final = 0.2
"""Seconds between two reads, however much happens."""


async def trees(queue: Queue, id: str, depth: int, limit: int) -> AsyncGenerator[FlowNode, None]:
    """The flow now and after each change, until its root is final or gone."""
    changes = _Changes(queue)
    try:
        while True:
            try:
                tree = await queue.flow(id, depth=depth, limit=limit)
            except JobNotFound:
                return
            if await changes.watch(tree):
                # Something may have happened before the watch began.
                continue
            yield tree
            if tree.state in FINAL:
                return
            await changes.wait()
    finally:
        await changes.close()


class _Changes:
    """Reads the events of all queues of a flow."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._ids: set[str] | None = None
        """The jobs of the flow; None if not all are known."""
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()

    async def watch(self, tree: FlowNode) -> bool:
        """True if the flow has queues that were not watched before."""
        nodes = [*tree.walk()]
        self._ids = None if any(node.hidden for node in nodes) else {node.id for node in nodes}
        new = {node.queue for node in nodes} - self._readers.keys()
        for name in new:
            queue = Queue(name, store=self._queue.store)
            self._readers[name] = asyncio.create_task(self._read(queue, await queue.newest_event()))
        return bool(new)

    async def wait(self) -> None:
        """Until something happened; raises the error of a reader."""
        news = asyncio.create_task(self._news.wait())
        try:
            await asyncio.wait([news, *self._readers.values()], return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        for reader in self._readers.values():
            if reader.done():
                reader.result()
        await asyncio.sleep(REST)
        self._news.clear()

    async def close(self) -> None:
        for reader in self._readers.values():
            reader.cancel()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)

    async def _read(self, queue: Queue, after: str) -> None:
        async for event in queue.events(after):
            if self._ids is None or event.job_id is None or event.job_id in self._ids:
                self._news.set()
