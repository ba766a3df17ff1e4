"""How the servers behind a URL are reached."""

from __future__ import annotations

from functools import partial

from .cluster import Cluster
from .connection import CONNECTING, Commands, Connection, Opens, open_link
from .link import Hear, Link
from .primary import PrimaryConnection, Sentinels
from .target import Target


def reach(target: Target) -> tuple[Commands, Opens]:
    """What takes commands, and what makes links for subscriptions."""
    if target.kind == "cluster":
        cluster = Cluster(target)

        async def to_some_node(hear: Hear | None = None, patience: float = CONNECTING) -> Link:
            return await open_link(cluster.any_place(), hear, patience)

        return cluster, to_some_node
    if target.kind == "sentinel":
        sentinels = Sentinels(target)
        return PrimaryConnection(target, sentinels), sentinels.open_link
    return Connection(target), partial(open_link, target)
