"""Wake-ups by long polls: one request waits for all listeners of an event loop.

    listener.wait() ──> Ear: every listener that is waited for, with the number of wake-ups that it knows
                         │                                  ^
                         └── POST /v1/listen ── held ───────┘ the numbers now; where one is another, a wake

The server keeps its listener between the polls, and counts. So nothing is polled for a listener that nobody waits for,
and what happens meanwhile is known when the next poll is answered. A listener that comes while a poll is held gets one
of its own, and joins the others with the next.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from ...errors import RopewayError
from ...job.ids import new_token
from ...store.listening import EarListener
from ...store.values import Topic

LISTEN: Final = "/v1/listen"
HOLD: Final = 20.0
"""Seconds for which a request is held: shorter than proxies allow, and than it should take to miss a dead server."""
EARLY: Final = 0.5
"""Part of that time before which an answer without news is early: the server is about to end."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

Ask: TypeAlias = Callable[[str, bytes, float], Awaitable[bytes]]


class Heard(msgspec.Struct, frozen=True):
    wakes: dict[str, int]


class Waiting(Protocol):
    """A claim that waits by a listener."""

    def interrupt(self) -> None: ...


class Ear:
    """Polls for the listeners of one event loop."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._listeners: set[RemoteListener] = set()
        self._polled: set[RemoteListener] = set()
        """Those of the polls under way."""
        self._polls: dict[asyncio.Task[None], list[RemoteListener]] = {}
        self._closed: list[str] = []
        """Listeners that the server may forget."""
        self._starts_soon = False

    def add(self, listener: RemoteListener) -> None:
        self._listeners.add(listener)

    def remove(self, listener: RemoteListener) -> None:
        self._listeners.discard(listener)
        if listener.wakes:
            self._closed.append(listener.id)
        for poll, listeners in self._polls.items():
            if listener in listeners and self._listeners.isdisjoint(listeners):
                poll.cancel()

    def poll(self) -> None:
        """Begins to poll for listeners that are waited for, in the next turn of the loop: others come in this one."""
        if not self._starts_soon:
            self._starts_soon = True
            asyncio.get_running_loop().call_soon(self._start)

    async def close(self) -> None:
        for listener in [*self._listeners]:
            listener.close()
        if polls := [*self._polls]:
            for poll in polls:
                poll.cancel()
            await asyncio.wait(polls)

    def _start(self) -> None:
        self._starts_soon = False
        if self._unheard():
            poll = asyncio.create_task(self._run(), name="ropeway-remote-ear")
            # Found by `remove` also before its first step.
            self._polls[poll] = []
            poll.add_done_callback(self._polls.pop)

    def _unheard(self) -> list[RemoteListener]:
        return [each for each in self._listeners if each.is_waited_for and each not in self._polled]

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "it runs as a task"
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while listeners := self._unheard():
            self._polls[task] = listeners
            self._polled.update(listeners)
            began = loop.time()
            try:
                has_news = await self._poll(listeners)
            except (RopewayError, OSError):
                # Whoever waits has a safety poll, which tells what is wrong.
                has_news = False
                began = loop.time()
            finally:
                self._polled.difference_update(listeners)
            if has_news or loop.time() - began > HOLD * EARLY:
                pause = FIRST_PAUSE
                continue
            self._polls[task] = []
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _poll(self, listeners: Sequence[RemoteListener]) -> bool:
        """True if the answer has news of a listener."""
        closed, self._closed = self._closed, []
        asked = {"listeners": [each.asked() for each in listeners], "wait": HOLD, "close": closed}
        answer = await self._ask(LISTEN, msgspec.msgpack.encode(asked), HOLD)
        wakes = msgspec.msgpack.decode(answer, type=Heard).wakes
        news = [each.heard(wakes.get(each.id, 0)) for each in listeners]
        return any(news)


class RemoteListener(EarListener[Ear]):
    """A listener, of which the server has the other half."""

    def __init__(
        self,
        ear: Callable[[], Ear],
        usable: Callable[[], None],
        url: str,
        what: tuple[Topic, Sequence[str]],
        worker: str | None = None,
    ) -> None:
        self.id: Final = new_token()
        self.wakes = 0
        """The server's number of wake-ups, as far as it is known here; 0 before the first poll."""
        self.claims: Final[set[Waiting]] = set()
        self._topic, self._queues = what
        self._worker = worker
        self._waits = 0
        super().__init__(ear, usable, url)

    @property
    def is_waited_for(self) -> bool:
        return self._waits > 0 and not self._is_woken

    async def wait(self, timeout: float | None = None) -> bool:
        ear = self._listening()
        self._waits += 1
        try:
            ear.poll()
            return await super().wait(timeout)
        finally:
            self._waits -= 1

    def asked(self) -> dict[str, Any]:
        what = {"id": self.id, "topic": self._topic, "queues": [*self._queues], "after": self.wakes}
        return what if self._worker is None else {**what, "worker": self._worker}

    def heard(self, wakes: int) -> bool:
        """Takes the server's number; True if it is news."""
        is_news = wakes != self.wakes
        self.wakes = wakes
        if is_news and self._is_open:
            self.wake()
        return is_news

    def wake(self) -> None:
        super().wake()
        self._interrupt_claims()

    def close(self) -> None:
        super().close()
        self._interrupt_claims()

    def take(self) -> bool:
        """True if it was woken since the last time."""
        return self._take()

    def _interrupt_claims(self) -> None:
        for claim in [*self.claims]:
            claim.interrupt()
