"""Runs scripts and commands of one store handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import StoreClosed
from ...job.instants import Instant
from ...store import forks
from ...store.doubt import in_doubt
from .encoding import pack
from .keys import Keys
from .link import Argument
from .resources import HandleResources, LoopResources
from .scripts import SCRIPTS
from .target import Target


class Executor:
    """Runs scripts and commands on the connections of the running event loop."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.keys = Keys(target.prefix)
        self.resources = HandleResources(target)
        self.registered: set[str] = set()
        """Queues that this handle knows to be in the list of queues."""
        self.life: bytes | None = None
        """The id that the store had when this handle saw it last; emptying the server changes it."""
        self._is_closed = False

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            forks.notice()
            await self.resources.close()

    def check(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.target.url)
        forks.notice()

    def on_loop(self) -> LoopResources:
        self.check()
        return self.resources.here()

    async def ready(self) -> LoopResources:
        own = self.on_loop()
        if not own.closes_with_loop:
            await own.close_with_loop()
        return own

    async def execute(self, command: str, key: str, *arguments: Argument) -> Any:
        return await (await self.ready()).commands.execute(command, key, *arguments)

    async def call(self, script: str, keys: tuple[str, ...], *arguments: Argument) -> Any:
        return await (await self.ready()).commands.run(SCRIPTS[script], keys, *arguments)

    async def run(self, script: str, queue: str, *arguments: Any) -> Any:
        """Runs a script on one queue."""
        return await self.call(script, (self.keys.queue(queue),), pack(arguments))

    async def run_packed(self, queue: str, script: str, *arguments: bytes) -> Any:
        return await self.call(script, (self.keys.queue(queue),), *arguments)

    async def deliver(self, queue: str, posted: Sequence[bytes], now: Instant | None) -> None:
        """Delivers what a script put into the outbox of a queue, if that is soon done. Only a cluster has outboxes."""

    async def register(self, queues: Sequence[str]) -> None:
        """Adds queues to the list of queues that may exist, if this handle has not done so."""
        if new := [queue for queue in queues if queue not in self.registered]:
            await self.execute("SADD", self.keys.queues, *new)
            self.registered.update(new)

    async def notice_new(self, queues: Sequence[str]) -> None:
        """Lists queues again that are new although they were listed: somebody emptied the server."""
        if queues:
            self.registered.difference_update(queues)
            with in_doubt():
                await self.register(queues)
