"""A store proxy: passes every command on to another store. Subclasses observe commands, or make them fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar

from ..job.instants import Instant
from ..store.commands import Command
from ..store.contract import Listener, Store
from ..store.values import Topic

A = TypeVar("A")


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

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        return self.inner.listen(topic, queues, worker)
