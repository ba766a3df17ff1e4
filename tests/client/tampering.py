"""A store between a test and the real one: it counts calls, and does to them what the test wants."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self, TypeVar

from msgspec.structs import astuple

from ropeway.errors import StoreUnavailable
from ropeway.job.instants import Instant
from ropeway.store.commands import Claim, Command, Find, verb_of
from ropeway.store.contract import Store
from ropeway.store.offers import Offers
from ropeway.testing.proxy import StoreProxy

A = TypeVar("A")


class Tampering:
    """What happens to calls, by verb. All handles of a tampered store share it, from whatever thread."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.arguments: list[tuple[str, tuple[Any, ...]]] = []
        self.before: dict[str, Callable[..., Awaitable[None] | None]] = {}
        """Called with the arguments; if it raises, the store never hears of the call."""
        self.after: dict[str, Callable[[Any], Any]] = {}
        """Called with the answer, and may give another; if it raises, the caller never hears of either."""

        self.offers: Offers | None = None
        """Instead of what the store itself offers."""
        self._expected: dict[str, list[asyncio.Future[None]]] = {}

    def answered(self, verb: str) -> asyncio.Future[None]:
        """Done when the next call of the verb has its answer."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._expected.setdefault(verb, []).append(future)
        return future

    def note_answer(self, verb: str) -> None:
        for future in self._expected.pop(verb, []):
            future.get_loop().call_soon_threadsafe(_resolve, future)

    def given_to(self, verb: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.arguments if called == verb]


class _Tampered(StoreProxy):
    def __init__(self, store: Store, tampering: Tampering, url: str) -> None:
        super().__init__(store)
        self.url = url
        self._tampering = tampering

    @property
    def offers(self) -> Offers:
        return self._tampering.offers or self.inner.offers

    def sibling(self) -> Self:
        return type(self)(self.inner.sibling(), self._tampering, self.url)

    async def open(self) -> None:
        await self._meet("open", ())
        await super().open()

    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        verb = verb_of(command)
        await self._meet(verb, (command,) if isinstance(command, Claim | Find) else astuple(command))
        answer = await super().do(command, now)
        answer = await _done(self._tampering.after.get(verb), answer) or answer
        self._tampering.note_answer(verb)
        return answer

    async def _meet(self, verb: str, arguments: tuple[Any, ...]) -> None:
        self._tampering.calls[verb] += 1
        self._tampering.arguments.append((verb, arguments))
        await _done(self._tampering.before.get(verb), *arguments)


def tampered(store: Store, tampering: Tampering, url: str | None = None) -> Store:
    """With a URL of its own it is another store to whoever looks at that."""
    return _Tampered(store, tampering, url or store.url)


async def _done(act: Callable[..., Any] | None, *arguments: Any) -> Any:
    answer = act(*arguments) if act else None
    return await answer if inspect.isawaitable(answer) else answer


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Door:
    """Holds up calls until it is opened: `tampering.before["add"] = door.pass_through`."""

    def __init__(self) -> None:
        self.reached: Final = asyncio.Event()
        self.opened: Final = asyncio.Event()

    async def pass_through(self, *_: Any) -> None:
        self.reached.set()
        await self.opened.wait()


class Outage:
    """Raises for a number of calls, then lets them pass."""

    def __init__(self, calls: int, error: Exception | None = None) -> None:
        self._left = calls
        self._hit = threading.Event()
        self._error = error or StoreUnavailable("test://", "on purpose")

    def __call__(self, *_: Any) -> None:
        if self._left > 0:
            self._left -= 1
            self._hit.set()
            raise self._error

    async def hit(self) -> None:
        """Returns when a call has met it, on whatever thread."""
        assert await asyncio.to_thread(self._hit.wait, 20)
