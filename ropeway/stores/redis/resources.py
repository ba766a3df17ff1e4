"""Connections and subscriptions of one store handle, per event loop."""

from __future__ import annotations

from functools import partial

from ...store import loops
from .blocking import BlockingLinks
from .cluster import Cluster
from .cluster_subscriber import ClusterSubscriber
from .connection import Commands, Connection, open_link
from .keys import Keys
from .primary import PrimaryConnection, Sentinels
from .queue_list import QueueList
from .subscriber import Subscriber
from .target import Target


class LoopResources(loops.LoopResources):
    """What a handle uses on one event loop."""

    def __init__(self, target: Target, everywhere: loops.PerLoop[LoopResources]) -> None:
        super().__init__(everywhere)
        self.commands, self.subscriber = _transports(target)
        self.queue_list = QueueList(self.commands, Keys(target.prefix).queues)

    async def close(self) -> None:
        await self.queue_list.close()
        await self.subscriber.close()
        await self.commands.close()


class HandleResources(loops.PerLoop[LoopResources]):
    """What a handle uses on all event loops, and on threads that have none."""

    def __init__(self, target: Target) -> None:
        super().__init__(partial(LoopResources, target))
        self.blocking = BlockingLinks(target)

    async def close(self) -> None:
        self.blocking.close()
        await super().close()


def _transports(target: Target) -> tuple[Commands, Subscriber | ClusterSubscriber]:
    """Connections for commands and for wakes, as the kind of URL needs them."""
    if target.kind == "cluster":
        cluster = Cluster(target)
        return cluster, ClusterSubscriber(cluster)
    if target.kind == "sentinel":
        sentinels = Sentinels(target)
        return PrimaryConnection(target, sentinels), Subscriber(sentinels.open_link)
    return Connection(target), Subscriber(partial(open_link, target))
