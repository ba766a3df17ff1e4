"""Places where nobody has made a store yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.stores.databases import new_database_place
from tests.stores.servers import new_place

FRESH: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/fresh.db",
    "redis": lambda _: new_place(),
    "postgres": lambda _: new_database_place(),
}
