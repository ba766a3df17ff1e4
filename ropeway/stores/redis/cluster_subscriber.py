"""Subscriptions in a cluster: one connection to each node that holds a queue somebody listens to.

    listener of a, b, c  ->  subscriber of node 1: a, c
                             subscriber of node 2: b

So a node that fails does not silence queues of others. Nodes pass messages on to each other: a queue that moves is
still heard on the old node, until that connection ends; the next one is to the node that holds the first channel then.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from ...errors import StoreError
from ...store.tries import CONNECTING
from .cluster import Cluster
from .connection import open_link
from .link import Hear, Link
from .subscriber import LONGEST_PAUSE, RedisListener, Subscriber
from .target import Target


class NodeSubscriber(Subscriber):
    """The subscriber for all channels of one node."""

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


class ClusterSubscriber:
    """Subscribers of all nodes that hold a queue somebody listens to."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster: Final = cluster
        self._subscribers: dict[str, NodeSubscriber] = {}
        self._joining: dict[RedisListener, asyncio.Task[None]] = {}

    def add(self, listener: RedisListener) -> None:
        task = asyncio.get_running_loop().create_task(self._join(listener), name="ropeway-redis-subscribers")
        self._joining[listener] = task
        task.add_done_callback(lambda _: self._joining.pop(listener, None))

    def remove(self, listener: RedisListener) -> None:
        if joining := self._joining.pop(listener, None):
            joining.cancel()
        for subscriber in self._subscribers.values():
            subscriber.remove(listener)

    async def close(self) -> None:
        joining = [*self._joining.values()]
        for listener in [*self._joining]:
            listener.close()
        if joining:
            await asyncio.wait(joining)
        for subscriber in self._subscribers.values():
            await subscriber.close()

    async def _join(self, listener: RedisListener) -> None:
        for channel in listener.channels:
            node = await self._node_of(channel)
            subscriber = self._subscribers.get(node.address)
            if subscriber is None:
                subscriber = self._subscribers[node.address] = NodeSubscriber(self._cluster, node)
            subscriber.add(listener, [channel])

    async def _node_of(self, channel: str) -> Target:
        while True:
            try:
                return await self._cluster.where(channel)
            except StoreError:
                # Whoever waits has a safety poll, which tells what is wrong.
                await asyncio.sleep(LONGEST_PAUSE * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
