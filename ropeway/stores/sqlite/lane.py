"""A thread that does calls in rounds: all that wait when it comes round are done together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar, cast

from ...job.instants import Instant

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


class Lane(threading.Thread):
    """Ends after `stop`, when the calls before it are done. `do` must leave an answer or an error in each call."""

    def __init__(self, name: str, do: Callable[[list[Call[Any]]], None], end: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._do, self._end = do, end
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()

    def put(self, call: Call[Any]) -> None:
        self._calls.put(call)

    @property
    def is_waiting(self) -> bool:
        """Whether there are calls for another round already."""
        return not self._calls.empty()

    def stop(self) -> None:
        self._calls.put(None)

    def run(self) -> None:
        is_stopped = False
        while not is_stopped:
            calls, is_stopped = self._gather()
            # Nobody waits for the outcome of a cancelled call, and nobody was promised one.
            calls = [call for call in calls if not call.future.cancelled()]
            if calls:
                try:
                    self._do(calls)
                except BaseException as error:
                    # A thread that dies in silence leaves its callers waiting for ever.
                    LOG.exception("%s failed", self.name)
                    for call in calls:
                        call.error = error
                    deliver({call.loop: [c.deliver for c in calls if c.loop is call.loop] for call in calls})
        self._end()

    def _gather(self) -> tuple[list[Call[Any]], bool]:
        calls: list[Call[Any]] = []
        call = self._calls.get()
        while call is not None:
            calls.append(call)
            if len(calls) == MOST_CALLS:
                return calls, False
            try:
                call = self._calls.get_nowait()
            except Empty:
                return calls, False
        return calls, True


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
