"""A store proxy: passes every command on to another store. Subclasses observe commands, or make them fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar

from ..job.instants import Instant
from ..store.commands import Claim, Command
from ..store.contract import Listener, Store
from ..store.values import Served, Topic

A = TypeVar("A")


class ListenerProxy:
    """Never lets the inner listener claim, so that every claim goes through the store proxy."""

    def __init__(self, listener: Listener) -> None:
        self._inner = listener

    async def wait(self, timeout: float | None = None) -> bool:
        return await self._inner.wait(timeout)

    async def claim(self, request: Claim, timeout: float | None = None) -> Served | None:
        await self._inner.wait(timeout)
        return None

    def interrupt(self) -> None:
        self._inner.interrupt()

    def close(self) -> None:
        self._inner.close()


class StoreProxy(Store):
    """Override `do`, or the methods of the commands that interest you."""

    def __init__(self, store: Store) -> None:
        self.inner = store
        self.url = store.url

    def now(self, given: Instant | None) -> Instant | None:
        """The time at which every command is executed; None for the store's own clock."""
        return given

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    def sibling(self) -> Self:
        return type(self)(self.inner.sibling())

    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        return await self.inner.do(command, self.now(now))

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        return ListenerProxy(self.inner.listen(topic, queues))
