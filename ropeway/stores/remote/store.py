"""The remote store: any command is one request to a server, which executes it on a store of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self, TypeVar, cast

from ...errors import StoreClosed
from ...job.instants import Instant
from ...store import forks, loops
from ...store.commands import Claim, Command, ReadClock, Withdraw
from ...store.contract import Doing, Listener, Store
from ...store.values import Claimed, Topic
from ...store.waiting import ClaimListeners
from .calls import Calls
from .claims import WaitingClaim, end_wait
from .connections import Connections
from .ear import Ear, RemoteListener
from .target import Target

A = TypeVar("A")


class LoopResources(loops.LoopResources):
    """What a handle uses on one event loop."""

    def __init__(self, target: Target, owner: loops.PerLoop[LoopResources]) -> None:
        super().__init__(owner)
        self.connections = Connections(target)
        self.calls = Calls(target, self.connections)
        self.ear = Ear(self.calls.ask)

    async def close(self) -> None:
        await self.ear.close()
        await self.connections.close()


class RemoteStore(Store):
    """Jobs in the store behind a server of Ropeway, which any number of machines may use at once."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._resources = loops.PerLoop[LoopResources](partial(LoopResources, target))
        self._claim_listeners = ClaimListeners[RemoteListener]()
        self._is_closed = False

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:  # noqa: ARG003 - a server is there or not
        """`https://broker:8787`; see `Target` for what else it may say."""
        return cls(Target.from_url(url))

    def sibling(self) -> Self:
        return type(self)(self._target)

    async def open(self) -> None:
        """Asks the server something, so that a wrong address, token or version is known now."""
        await self._execute(ReadClock())

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            forks.notice()
            await self._resources.close()

    def do(self, command: Command[A], now: Instant | None = None) -> Doing[A]:
        asked: Any = command
        if isinstance(asked, Claim) and asked.wait:
            return cast("Doing[A]", self._claim_waiting(asked))
        if isinstance(asked, Withdraw):
            return cast("Doing[A]", self._withdraw(asked))
        return self._execute(command, now)

    async def _execute(self, command: Command[A], now: Instant | None = None) -> A:
        return await (await self._ready()).calls.execute(command, now)

    async def _claim_waiting(self, request: Claim) -> Claimed:
        with self._claim_listeners.of(request, lambda queue: self._listen("jobs", [queue])) as (listener, _):
            return await WaitingClaim(request, listener, self._execute).run()

    async def _withdraw(self, command: Withdraw) -> Claimed:
        self._check()
        await end_wait(command.token)
        return await self._execute(command)

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        listener = self._listen(topic, queues, worker)
        return listener if worker is None else self._claim_listeners.note(queues[0], worker, listener)

    def _listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> RemoteListener:
        self._check()
        return RemoteListener(lambda: self._on_loop().ear, self._check, self.url, (topic, queues), worker)

    # Resources of the running loop

    def _check(self) -> None:
        if self._is_closed:
            raise StoreClosed(self.url)
        forks.notice()

    def _on_loop(self) -> LoopResources:
        self._check()
        return self._resources.here()

    async def _ready(self) -> LoopResources:
        own = self._on_loop()
        if not own.closes_with_loop:
            await own.close_with_loop()
        return own
