"""What a place is to the systems of a family: a folder, or a server or a database of its own."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from benchmarks.postgres import Postgres
from benchmarks.valkey import Valkeys


class Server(Protocol):
    """Gives each folder an address, under which nobody else stores anything."""

    def address(self, folder: Path) -> str: ...
    def forget(self, folder: Path) -> None: ...
    def close(self) -> None: ...


STARTERS: dict[str, Callable[[Path], Server]] = {"redis": Valkeys, "postgres": Postgres}


class Servers:
    """Starts the servers that the families need, when they need them, until the block ends."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._running: dict[str, Server] = {}

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._running.values():
            server.close()

    def address(self, family: str, folder: Path) -> str:
        server = self._server(family)
        return server.address(folder) if server else str(folder)

    def forget(self, family: str, folder: Path) -> None:
        """Drops what the folder's address holds."""
        if server := self._server(family):
            server.forget(folder)

    @contextlib.contextmanager
    def pinned(self, family: str, folder: Path) -> Iterator[None]:
        """Holds a transaction open at the folder's address, so that nothing dead there can be cleared away."""
        server = self._server(family)
        assert isinstance(server, Postgres), "no other family has transactions that pin anything"
        with server.pinned(folder):
            yield

    def _server(self, family: str) -> Server | None:
        if family not in self._running and family in STARTERS:
            self._running[family] = STARTERS[family](self._data)
        return self._running.get(family)
