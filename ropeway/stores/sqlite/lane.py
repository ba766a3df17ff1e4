"""A thread that does calls in rounds: all that wait when it comes round are done together.

A caller without an event loop, who would have to wait for that thread, does a round by himself if it is idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from ... import logger
from ...errors import StoreClosed
from ...job.instants import Instant
from .threads import Promise

T = TypeVar("T")

LOG: Final = logger.log
LOOK_EVERY: Final = 0.5
MOST_CALLS: Final = 1_000
"""A round ends with this many calls, so that its transaction does not grow without bound."""


class Call(Generic[T]):
    """A verb to do, and what came of it. Subclasses know who waits for that."""

    __slots__ = ("answer", "arguments", "error", "is_durable", "is_thorough", "loop", "now", "verb")

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
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where to deliver it; None: on any thread."""
        self.answer: T | None = None
        self.error: BaseException | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Makes what the caller waits for."""

    @property
    def is_given_up(self) -> bool:
        """Nobody waits for the outcome any more, and nobody was promised one."""
        return False

    def deliver(self) -> None:
        raise NotImplementedError


class AwaitedCall(Call[T]):
    __slots__ = ("future",)

    def _prepare(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()

    @property
    def is_given_up(self) -> bool:
        return self.future.cancelled()

    def deliver(self) -> None:
        """In its own loop. A caller who was cancelled meanwhile is told nothing."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            # The round that did the call has set it.
            self.future.set_result(cast(T, self.answer))


class BlockingCall(Call[T]):
    """Waited for by a thread that has no event loop."""

    __slots__ = ("_delivered",)

    def _prepare(self) -> None:
        self._delivered = threading.Lock()
        self._delivered.acquire()

    def deliver(self) -> None:
        if self._delivered.locked():
            self._delivered.release()

    def wait(self) -> T:
        # In slices: a signal that arrives just before a wait begins is not looked at until it ends.
        while not self._delivered.acquire(timeout=LOOK_EVERY):
            pass
        if self.error is not None:
            raise self.error
        return cast(T, self.answer)


class Woken(Protocol):
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def wake(self) -> None: ...


class Rest:
    """A pause of a lane: between `reached` and `over` it has nothing open."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.over = threading.Event()


class Later(NamedTuple):
    """A call whose time has not come yet."""

    at: float
    call: Call[Any]


Order: TypeAlias = Call[Any] | Rest | Later | None
"""None is the last."""


class Lane(threading.Thread):
    """Ends after `stop`, when the calls before it are done. `do` must leave an answer or an error in each call.

    `let_go` closes what the lane has open; `do` opens it again if there is another call.
    """

    def __init__(self, what: str, path: str, do: Callable[[list[Call[Any]]], None], let_go: Callable[[], None]) -> None:
        super().__init__(name=f"ropeway {what} of {path}", daemon=True)
        self._path, self._do, self._let_go = path, do, let_go
        self._calls: SimpleQueue[Order] = SimpleQueue()
        self._later: Later | None = None
        self._ended: Promise[None] = Promise()
        self.is_ended = False
        """Not asked of the promise: a signal in the middle of that would leave its lock to nobody."""
        self._turn = threading.Lock()
        """Whoever holds it may use what the lane has open."""

    def put(self, call: Call[Any]) -> None:
        self._calls.put(call)
        if self.is_ended:
            self._excuse()

    def put_later(self, seconds: float, call: Call[Any]) -> None:
        """To be done once so long has passed. While there is one, others are dropped."""
        # The lane itself notes it: a signal leaves nothing half done here.
        self._calls.put(Later(time.monotonic() + seconds, call))

    @property
    def has_later(self) -> bool:
        return self._later is not None

    def do_here(self, call: BlockingCall[T]) -> T:
        """On the calling thread, if the lane is idle; otherwise with its next round."""
        if self._calls.empty() and not self._turn.locked() and not self.is_ended:
            self._do_round_here(call)
        else:
            self.put(call)
        return call.wait()

    def _do_round_here(self, call: BlockingCall[Any]) -> None:
        try:
            # By `with`: a signal behind a call of `acquire` would leave nobody to give it back.
            with self._turn:
                if self.is_ended:
                    self._tell_too_late(call)
                else:
                    self._do([call])
        except BaseException:
            # A signal handler raised it, in the main thread. What is left to do, the lane does at once.
            self.put(BlockingCall(nothing, (), is_durable=False))
            raise

    @property
    def is_waiting(self) -> bool:
        """Whether there are calls for another round already."""
        return not self._calls.empty()

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
        # It has nothing more to do: this waits for its last breath.
        self.join()

    def run(self) -> None:
        is_stopped = False
        while not is_stopped:
            calls, order = self._gather()
            with self._turn:
                self._do_round(calls)
                is_stopped = order is None
                if isinstance(order, Rest):
                    self._close()
                    order.reached.set()
                    order.over.wait()
        with self._turn:
            self._close()
            self.is_ended = True
            self._ended.set_result(None)
        self._excuse()

    def _do_round(self, calls: list[Call[Any]]) -> None:
        calls = [call for call in calls if not call.is_given_up]
        if not calls:
            return
        try:
            self._do(calls)
        except BaseException as error:
            # A thread that dies in silence leaves its callers waiting for ever.
            LOG.exception("%s failed", self.name)
            for call in calls:
                call.error = error
            deliver(calls)

    def _close(self) -> None:
        try:
            self._let_go()
        except BaseException:
            # Whoever waits for its rest or its end must not wait for ever.
            LOG.exception("%s could not let go of its file", self.name)

    def _gather(self) -> tuple[list[Call[Any]], Order]:
        """The calls of a round, and what ended it: the last of them, a rest, or None for the end of all."""
        calls: list[Call[Any]] = []
        order = self._next()
        while isinstance(order, Call | Later):
            if isinstance(order, Call):
                calls.append(order)
            elif self._later is None:
                self._later = order
            if len(calls) == MOST_CALLS:
                break
            try:
                order = self._calls.get_nowait()
            except Empty:
                break
        return calls, order

    def _next(self) -> Order:
        if self._later is None:
            return self._calls.get()
        left = self._later.at - time.monotonic()
        if left > 0:
            with contextlib.suppress(Empty):
                return self._calls.get(timeout=left)
        due, self._later = self._later.call, None
        return due

    def _excuse(self) -> None:
        """Who asked for a rest too late may go on: nothing is open. Who called too late, in another thread, is told."""
        with contextlib.suppress(Empty):
            while True:
                order = self._calls.get_nowait()
                if isinstance(order, Rest):
                    order.reached.set()
                elif isinstance(order, Call):
                    self._tell_too_late(order)

    def _tell_too_late(self, call: Call[Any]) -> None:
        call.error = StoreClosed(self._path, "it was closed while another thread called it")
        deliver([call])


def deliver(calls: Iterable[Call[Any]], woken: Iterable[Woken] = ()) -> None:
    """Tells each loop what is news there, with one wake-up for all of it."""
    tasks: defaultdict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = defaultdict(list)
    for call in calls:
        if call.loop is None:
            call.deliver()
        else:
            tasks[call.loop].append(call.deliver)
    for listener in woken:
        tasks[listener.loop].append(listener.wake)
    for loop, own in tasks.items():
        try:
            loop.call_soon_threadsafe(_do_all, own)
        except RuntimeError:
            # The loop was closed: nobody is left who waits.
            continue


def nothing(_: object) -> None:
    """A verb, for a round that is wanted for what every round does."""


def _do_all(tasks: Iterable[Callable[[], None]]) -> None:
    for task in tasks:
        task()
