"""How the servers behind a URL are reached."""

from __future__ import annotations

from functools import partial

from .cluster import Cluster
from .connection import Commands, Connection, open_link
from .ears import Ears
from .primary import PrimaryConnection, Sentinels
from .target import Target
from .wake import Ear


def reach(target: Target) -> tuple[Commands, Ear | Ears]:
    """What takes commands, and what hears wakes."""
    if target.kind == "cluster":
        cluster = Cluster(target)
        return cluster, Ears(cluster)
    if target.kind == "sentinel":
        sentinels = Sentinels(target)
        return PrimaryConnection(target, sentinels), Ear(sentinels.open_link)
    return Connection(target), Ear(partial(open_link, target))
