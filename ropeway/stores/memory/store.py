"""The memory store: each command is one step under its lock."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final, Self, TypeVar, cast
from weakref import WeakSet

from ...errors import InvalidOption, StoreUnavailable
from ...job.instants import Instant
from ...showing import shown
from ...store.commands import Claim, Command, Find
from ...store.contract import Store
from ...store.values import Page, Topic
from ...store.waiting import ClaimListeners
from .handle_guard import HandleGuard
from .shared_state import REGISTRY, SharedState
from .step import Step
from .verbs import VERBS
from .verbs.find import Search
from .verbs.tick import next_at
from .wake import MemoryListener

A = TypeVar("A")

_URL: Final = re.compile(r"memory://([A-Za-z0-9][A-Za-z0-9._-]{0,127})?", re.IGNORECASE)
_TURN: Final = 0.001


class MemoryStore(Store):
    """Jobs in this process: `memory://` is a new store each time, `memory://name` is shared in the process.

    Either exists as long as one of its handles, siblings included, is open: the last `close` discards the jobs.
    """

    def __init__(self, url: str, name: str | None = None, shared: SharedState | None = None) -> None:
        self.url = url
        self._name = name
        self._guard = HandleGuard(url)
        self._shared: SharedState | None = shared or (REGISTRY.attach(name, self._guard) if name else SharedState())
        self._listeners: WeakSet[MemoryListener] = WeakSet()
        self._claim_listeners = ClaimListeners[MemoryListener]()
        self._turned_at = time.monotonic()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        read = _URL.fullmatch(url)
        if read is None:
            raise InvalidOption(
                "url",
                f"cannot be {shown(url)}: use memory:// for a private store, or memory://name, "
                "of letters, digits, '.', '_' or '-', for one that is shared in this process",
            )
        if not create and not (read[1] and REGISTRY.has(read[1])):
            raise StoreUnavailable(
                url, "no such store exists in this process, and memory stores of other processes are not visible"
            )
        return cls(url, read[1])

    async def open(self) -> None:
        self._usable()

    async def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is None or self._guard.is_inherited:
            return
        self._guard.is_open = False
        for listener in list(self._listeners):
            listener.close()
        if self._name:
            REGISTRY.detach(self._name, shared, self._guard)

    def sibling(self) -> Self:
        shared = self._usable()
        return type(self)(self.url, self._name, None if self._name else shared)

    def _usable(self) -> SharedState:
        self._guard.check()
        assert self._shared is not None, "only `close` clears it"
        return self._shared

    async def _turn(self) -> SharedState:
        """Checks the handle, and yields to the event loop now and then.

        No command ever waits, so a task that only calls the store would otherwise starve all others of its loop.
        """
        shared = self._usable()
        moment = time.monotonic()
        if moment - self._turned_at > _TURN:
            self._turned_at = moment
            await asyncio.sleep(0)
            shared = self._usable()
        return shared

    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        if isinstance(command, Find):
            return cast(A, await self._find(command))
        if isinstance(command, Claim) and command.wait:
            return cast(A, await self._claim_listeners.claim(command, self.do, self._listen_to_jobs))
        with Step(await self._turn(), now) as step:
            answer: A = VERBS[type(command)](step, command)
            return answer

    async def _find(self, command: Find) -> Page:
        search = Search(command)
        while True:
            shared = await self._turn()
            with shared.lock:
                page = search.look(shared.queue(command.queue))
            if page is not None:
                return page

    def next_instant(self) -> Instant | None:
        """When something happens by itself, for fake clocks; 0 while a job is active, None if nothing is to come.

        None for a closed handle, too: those of the same jobs that are open tell.
        """
        if not self._guard.is_open:
            return None
        shared = self._usable()
        with shared.lock:
            if any(queue.index("active") for queue in shared.queues.values()):
                return 0
            return self.next_tick_at()

    def next_tick_at(self) -> Instant | None:
        """When a tick will have something to do in one of the queues, for fake clocks; also while jobs are active."""
        shared = self._usable()
        with shared.lock:
            return min((at for queue in shared.queues.values() if (at := next_at(queue)) is not None), default=None)

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> MemoryListener:
        listener = self._listen(topic, queues)
        return listener if worker is None else self._claim_listeners.note(queues[0], worker, listener)

    def _listen_to_jobs(self, queue: str) -> MemoryListener:
        return self._listen("jobs", [queue])

    def _listen(self, topic: Topic, queues: Sequence[str]) -> MemoryListener:
        listener = MemoryListener(self._usable().hub, self._guard, topic, queues)
        self._listeners.add(listener)
        return listener
