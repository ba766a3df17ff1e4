"""How the servers behind a URL are reached."""

from __future__ import annotations

from .cluster import Cluster
from .connection import Commands, Connection, Find
from .sentinel import Sentinels
from .target import Target


def reach(target: Target) -> tuple[Commands, Find]:
    """What takes commands, and what says where to subscribe."""
    if target.kind == "cluster":
        cluster = Cluster(target)

        async def some_node() -> Target:
            return cluster.any_place()

        return cluster, some_node
    if target.kind == "sentinel":
        sentinels = Sentinels(target)
        return Connection(target, sentinels.primary), sentinels.primary

    async def itself() -> Target:
        return target

    return Connection(target), itself
