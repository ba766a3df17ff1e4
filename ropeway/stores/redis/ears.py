"""Wakes in a cluster: each queue is heard on the node that holds it, so trouble of another node does not silence it.

    listener of a, b, c  ->  ear of node 1: a, c
                             ear of node 2: b

Servers of a cluster pass messages on to each other. So a queue that moves is still heard where its listener began,
until that connection ends; the next one is made to the node that holds the first of its channels then.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from ...errors import StoreError
from .cluster import Cluster
from .connection import CONNECTING, open_link
from .link import Hear, Link
from .target import Target
from .wake import LONGEST_PAUSE, Ear, RedisListener


class NodeEar(Ear):
    """One connection for all channels of a node."""

    def __init__(self, cluster: Cluster, node: Target) -> None:
        super().__init__(self._open_link)
        self._cluster = cluster
        self._node = node
        self._was_there = False

    async def _open_link(self, hear: Hear | None = None, patience: float = CONNECTING) -> Link:
        return await open_link(await self._find_node(), hear, patience)

    async def _find_node(self) -> Target:
        channel = next(iter(self._listeners), None)
        if self._was_there and channel is not None:
            self._node = await self._cluster.where(channel, anew=True)
        self._was_there = True
        return self._node


class Ears:
    """One ear for each node that holds a queue which somebody listens to."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster: Final = cluster
        self._ears: dict[str, NodeEar] = {}
        self._joining: dict[RedisListener, asyncio.Task[None]] = {}

    def add(self, listener: RedisListener) -> None:
        task = asyncio.get_running_loop().create_task(self._join(listener), name="ropeway-redis-ears")
        self._joining[listener] = task
        task.add_done_callback(lambda _: self._joining.pop(listener, None))

    def remove(self, listener: RedisListener) -> None:
        if joining := self._joining.pop(listener, None):
            joining.cancel()
        for ear in self._ears.values():
            ear.remove(listener)

    async def close(self) -> None:
        joining = [*self._joining.values()]
        for listener in [*self._joining]:
            listener.close()
        if joining:
            await asyncio.wait(joining)
        for ear in self._ears.values():
            await ear.close()

    async def _join(self, listener: RedisListener) -> None:
        for channel in listener.channels:
            node = await self._node_of(channel)
            ear = self._ears.get(node.address)
            if ear is None:
                ear = self._ears[node.address] = NodeEar(self._cluster, node)
            ear.add(listener, [channel])

    async def _node_of(self, channel: str) -> Target:
        while True:
            try:
                return await self._cluster.where(channel)
            except StoreError:
                # Whoever waits has a safety poll, which tells what is wrong.
                await asyncio.sleep(LONGEST_PAUSE * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
