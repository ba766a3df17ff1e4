"""How the servers behind a URL are reached."""

from __future__ import annotations

from .cluster import Cluster
from .connection import Commands, Connection
from .ears import Ears
from .sentinel import Sentinels
from .target import Target
from .wake import Ear


def reach(target: Target) -> tuple[Commands, Ear | Ears]:
    """What takes commands, and what hears wakes."""
    if target.kind == "cluster":
        cluster = Cluster(target)
        return cluster, Ears(cluster)
    if target.kind == "sentinel":
        sentinels = Sentinels(target)
        return Connection(target, sentinels.primary), Ear(sentinels.primary)

    async def itself() -> Target:
        return target

    return Connection(target), Ear(itself)
