"""Where the stores under test live: the one list of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

from ropeway.store.url import connect
from ropeway.testing.conformance.fixtures import NewHandle

from .brokers import broker_place
from .databases import used_database_place, used_schemas
from .fresh import new_fresh_class
from .servers import new_place, new_prefix, shared_cluster
from .wired import WiredStore

Place: TypeAlias = Callable[[Path], NewHandle]
"""Takes an empty folder of its own; answers handles on jobs that outlive each of them."""


def memory(_: Path) -> NewHandle:
    # Jobs in memory live as long as one handle does: this one.
    return connect("memory://").sibling


def memory_wired(_: Path) -> NewHandle:
    anchor = WiredStore(connect("memory://"))
    return anchor.sibling


def sqlite(folder: Path) -> NewHandle:
    return lambda: connect(f"sqlite:///{folder}/ropeway.db")


def sqlite_inbox(folder: Path) -> NewHandle:
    kind = new_fresh_class()
    return lambda: kind.from_url(f"sqlite:///{folder}/ropeway.db")


def redis(_: Path) -> NewHandle:
    url = new_place()
    return lambda: connect(url)


def cluster(_: Path) -> NewHandle:
    url = shared_cluster().url(new_prefix())
    return lambda: connect(url)


def postgres(_: Path) -> NewHandle:
    url = used_database_place()
    return lambda: connect(url)


def remote(folder: Path) -> NewHandle:
    url = broker_place(f"sqlite:///{folder}/ropeway.db")
    return lambda: connect(url)


def start_over() -> None:
    """The places that this test was given are not used any more, and may be given again."""
    used_schemas.let_go()


PLACES: Final[dict[str, Place]] = {
    "memory": memory,
    "sqlite": sqlite,
    "redis": redis,
    "postgres": postgres,
}
EVERYWHERE: Final[dict[str, Place]] = {
    **PLACES,
    "memory-wired": memory_wired,
    "sqlite-inbox": sqlite_inbox,
    "redis-cluster": cluster,
    "remote": remote,
}
"""Also the places that are another one in another manner: the suite says enough about them."""


@contextmanager
def empty_folder() -> Iterator[Path]:
    """In memory where the system can: a store is made for every test, and disks are slow to make it last."""
    in_memory = "/dev/shm"  # noqa: S108 - TemporaryDirectory makes a folder in it that nobody else can guess
    with TemporaryDirectory(dir=in_memory if os.access(in_memory, os.W_OK) else None) as folder:
        yield Path(folder)
