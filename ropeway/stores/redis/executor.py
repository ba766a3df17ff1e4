"""Calls of scripts and commands, on the connections of the running loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import StoreClosed
from ...store import forks
from ...store.doubt import in_doubt
from .encoding import pack
from .here import Everywhere, Here
from .keys import Keys
from .link import Argument
from .scripts import SCRIPTS
from .target import Target


class Executor:
    """What one handle runs scripts with."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.keys = Keys(target.prefix)
        self.everywhere = Everywhere(target)
        self.registered: set[str] = set()
        """Queues that this handle knows to be in the list of queues."""
        self.life: bytes | None = None
        """Which life of the store this handle has seen."""
        self._is_closed = False

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            forks.notice()
            await self.everywhere.close()

    def check(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.target.url)
        forks.notice()

    def here(self) -> Here:
        self.check()
        return self.everywhere.here()

    async def settled(self) -> Here:
        here = self.here()
        if not here.closes_with_loop:
            await here.close_with_loop()
        return here

    async def execute(self, command: str, key: str, *arguments: Argument) -> Any:
        return await (await self.settled()).commands.execute(command, key, *arguments)

    async def call(self, script: str, keys: tuple[str, ...], *arguments: Argument) -> Any:
        return await (await self.settled()).commands.run(SCRIPTS[script], keys, *arguments)

    async def run(self, script: str, queue: str, *arguments: Any) -> Any:
        """Runs a script on one queue."""
        return await self.call(script, (self.keys.queue(queue),), pack(arguments))

    async def run_packed(self, queue: str, script: str, *arguments: bytes) -> Any:
        return await self.call(script, (self.keys.queue(queue),), *arguments)

    async def register(self, queues: Sequence[str]) -> None:
        """Notes that these queues may exist: `queues` looks there first."""
        if new := [queue for queue in queues if queue not in self.registered]:
            await self.execute("SADD", self.keys.queues, *new)
            self.registered.update(new)

    async def notice_new(self, queues: Sequence[str]) -> None:
        """A queue that is new although it was noted: somebody emptied the server."""
        if queues:
            self.registered.difference_update(queues)
            with in_doubt():
                await self.register(queues)
