"""A thread that does calls in rounds: all that wait when it comes round are done together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar, cast

from ...job.instants import Instant
from .threads import Promise

T = TypeVar("T")

LOG: Final = logging.getLogger("ropeway")
MOST_CALLS: Final = 1_000
"""A round ends with this many calls, so that its transaction does not grow without bound."""


class Call(Generic[T]):
    """A verb to do, and where its answer is awaited."""

    __slots__ = ("answer", "arguments", "error", "future", "is_durable", "is_thorough", "loop", "now", "verb")

    def __init__(
        self,
        verb: Callable[..., T],
        arguments: tuple[Any, ...],
        *,
        now: Instant | None = None,
        is_durable: bool = True,
        is_thorough: bool = False,
    ) -> None:
        self.verb, self.arguments, self.now = verb, arguments, now
        self.is_durable, self.is_thorough = is_durable, is_thorough
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.answer: T | None = None
        self.error: BaseException | None = None

    def deliver(self) -> None:
        """In its own loop. A caller who was cancelled meanwhile is told nothing."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            # The round that did the call has set it.
            self.future.set_result(cast(T, self.answer))


class Rest:
    """A pause of a lane: between `reached` and `over` it has nothing open."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.over = threading.Event()


class Lane(threading.Thread):
    """Ends after `stop`, when the calls before it are done. `do` must leave an answer or an error in each call.

    `let_go` closes what the lane has open; `do` opens it again if there is another call.
    """

    def __init__(self, name: str, do: Callable[[list[Call[Any]]], None], let_go: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._do, self._let_go = do, let_go
        self._calls: SimpleQueue[Call[Any] | Rest | None] = SimpleQueue()
        self._ended: Promise[None] = Promise()

    def put(self, call: Call[Any]) -> None:
        self._calls.put(call)

    @property
    def is_waiting(self) -> bool:
        """Whether there are calls for another round already."""
        return not self._calls.empty()

    @property
    def is_ended(self) -> bool:
        return self._ended.done()

    def rest(self) -> Rest:
        """Asks it to let go, after the calls before this, until the rest is over."""
        rest = Rest()
        self._calls.put(rest)
        if self.is_ended:
            rest.reached.set()
        return rest

    def stop(self) -> None:
        self._calls.put(None)

    async def end(self) -> None:
        """Returns when the lane has come to its end, after `stop`."""
        await asyncio.wrap_future(self._ended)

    def run(self) -> None:
        is_stopped = False
        while not is_stopped:
            calls, order = self._gather()
            self._do_round(calls)
            is_stopped = order is None
            if isinstance(order, Rest):
                self._let_go()
                order.reached.set()
                order.over.wait()
        self._let_go()
        self._ended.set_result(None)
        self._excuse()

    def _do_round(self, calls: list[Call[Any]]) -> None:
        # Nobody waits for the outcome of a cancelled call, and nobody was promised one.
        calls = [call for call in calls if not call.future.cancelled()]
        if not calls:
            return
        try:
            self._do(calls)
        except BaseException as error:
            # A thread that dies in silence leaves its callers waiting for ever.
            LOG.exception("%s failed", self.name)
            for call in calls:
                call.error = error
            deliver({call.loop: [c.deliver for c in calls if c.loop is call.loop] for call in calls})

    def _gather(self) -> tuple[list[Call[Any]], Call[Any] | Rest | None]:
        """The calls of a round, and what ended it: the last of them, a rest, or None for the end of all."""
        calls: list[Call[Any]] = []
        order = self._calls.get()
        while isinstance(order, Call):
            calls.append(order)
            if len(calls) == MOST_CALLS:
                break
            try:
                order = self._calls.get_nowait()
            except Empty:
                break
        return calls, order

    def _excuse(self) -> None:
        """Whoever asked for a rest too late may go on: nothing is open."""
        with contextlib.suppress(Empty):
            while True:
                order = self._calls.get_nowait()
                if isinstance(order, Rest):
                    order.reached.set()


def deliver(tasks: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]]) -> None:
    """Does each loop's tasks in that loop, with one wake-up for all of them."""
    for loop, own in tasks.items():
        try:
            loop.call_soon_threadsafe(_do_all, own)
        except RuntimeError:
            # The loop was closed: nobody is left who waits.
            continue


def _do_all(tasks: Iterable[Callable[[], None]]) -> None:
    for task in tasks:
        task()
