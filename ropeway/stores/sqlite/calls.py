"""Calls, and the thread that executes them in rounds: all calls that wait when a round begins are executed together.

A caller without an event loop executes its call itself if the thread is idle.
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
    """A function to execute, and its answer or error. Subclasses deliver that to the caller."""

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
        """Event loop to deliver it in; None: any thread."""
        self.answer: T | None = None
        self.error: BaseException | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Creates the future or lock that the caller waits for."""

    @property
    def is_given_up(self) -> bool:
        """True if the caller was cancelled before the call began."""
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
        """Completes the future, in its own loop, unless the caller was cancelled meanwhile."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            # The round that did the call has set it.
            self.future.set_result(cast(T, self.answer))


class BlockingCall(Call[T]):
    """A call that a thread without an event loop waits for."""

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


class Pause:
    """A pause of a thread: between `reached` and `over` its connection is closed."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.over = threading.Event()


class ScheduledCall(NamedTuple):
    """A call to execute at an instant of the monotonic clock."""

    at: float
    call: Call[Any]


Order: TypeAlias = Call[Any] | Pause | ScheduledCall | None
"""An item of the thread's queue; None stops it."""


class CallThread(threading.Thread):
    """Executes calls in rounds until `stop`. `do` executes a round and must set an answer or an error in each call.

    `close_connection` is called when the thread pauses or ends; `do` connects again if there is another call.
    """

    def __init__(
        self, what: str, path: str, do: Callable[[list[Call[Any]]], None], close_connection: Callable[[], None]
    ) -> None:
        super().__init__(name=f"ropeway {what} of {path}", daemon=True)
        self._path, self._do, self._close_connection = path, do, close_connection
        self._calls: SimpleQueue[Order] = SimpleQueue()
        self._scheduled: ScheduledCall | None = None
        self._ended: Promise[None] = Promise()
        self.is_ended = False
        """A flag beside the promise, whose lock a signal could leave locked."""
        self._turn = threading.Lock()
        """Held by the thread that uses the connection."""

    def put(self, call: Call[Any]) -> None:
        self._calls.put(call)
        if self.is_ended:
            self._refuse_late_orders()

    def schedule(self, seconds: float, call: Call[Any]) -> None:
        """Executes `call` after so many seconds. One call at a time can be scheduled; further ones are dropped."""
        # The thread itself notes it, so that a signal cannot interrupt that.
        self._calls.put(ScheduledCall(time.monotonic() + seconds, call))

    @property
    def has_scheduled(self) -> bool:
        return self._scheduled is not None

    def do_blocking(self, call: BlockingCall[T]) -> T:
        """Executes a call on the calling thread if this thread is idle, otherwise in its next round."""
        if self._calls.empty() and not self._turn.locked() and not self.is_ended:
            self._do_on_caller_thread(call)
        else:
            self.put(call)
        return call.wait()

    def _do_on_caller_thread(self, call: BlockingCall[Any]) -> None:
        try:
            # By `with`: a signal behind a call of `acquire` would leave nobody to give it back.
            with self._turn:
                if self.is_ended:
                    self._refuse_late_call(call)
                else:
                    self._do([call])
        except BaseException:
            # A signal handler raised it, in the main thread. The thread finishes what is left.
            self.put(BlockingCall(no_op, (), is_durable=False))
            raise

    @property
    def is_waiting(self) -> bool:
        """True if there are calls for another round already."""
        return not self._calls.empty()

    def pause(self) -> Pause:
        """Asks the thread to close its connection, after the calls before this, until the pause is over."""
        pause = Pause()
        self._calls.put(pause)
        if self.is_ended:
            pause.reached.set()
        return pause

    def stop(self) -> None:
        self._calls.put(None)

    async def end(self) -> None:
        """Waits for the thread's end, after `stop`."""
        await asyncio.wrap_future(self._ended)
        # It has nothing more to do, so this does not block for long.
        self.join()

    def run(self) -> None:
        is_stopped = False
        while not is_stopped:
            calls, order = self._gather()
            with self._turn:
                self._do_round(calls)
                is_stopped = order is None
                if isinstance(order, Pause):
                    self._close()
                    order.reached.set()
                    order.over.wait()
        with self._turn:
            self._close()
            self.is_ended = True
            self._ended.set_result(None)
        self._refuse_late_orders()

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
            self._close_connection()
        except BaseException:
            # Callers that wait for its pause or its end must not wait for ever.
            LOG.exception("%s could not close its connection", self.name)

    def _gather(self) -> tuple[list[Call[Any]], Order]:
        """Collects the calls of a round, and what ended it: the last call, a pause, or None to stop."""
        calls: list[Call[Any]] = []
        order = self._next()
        while isinstance(order, Call | ScheduledCall):
            if isinstance(order, Call):
                calls.append(order)
            elif self._scheduled is None:
                self._scheduled = order
            if len(calls) == MOST_CALLS:
                break
            try:
                order = self._calls.get_nowait()
            except Empty:
                break
        return calls, order

    def _next(self) -> Order:
        if self._scheduled is None:
            return self._calls.get()
        left = self._scheduled.at - time.monotonic()
        if left > 0:
            with contextlib.suppress(Empty):
                return self._calls.get(timeout=left)
        due, self._scheduled = self._scheduled.call, None
        return due

    def _refuse_late_orders(self) -> None:
        """Answers what came after the end: pauses are granted, since nothing is open, and calls are refused."""
        with contextlib.suppress(Empty):
            while True:
                order = self._calls.get_nowait()
                if isinstance(order, Pause):
                    order.reached.set()
                elif isinstance(order, Call):
                    self._refuse_late_call(order)

    def _refuse_late_call(self, call: Call[Any]) -> None:
        call.error = StoreClosed(self._path, "it was closed while another thread called it")
        deliver([call])


def deliver(calls: Iterable[Call[Any]], woken: Iterable[Woken] = ()) -> None:
    """Delivers calls and wakes listeners, with one wake-up per event loop."""
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
            # The loop was closed, so nobody waits.
            continue


def no_op(_: object) -> None:
    """A call without a verb: its round ingests the inbox and finishes what was interrupted."""


def _do_all(tasks: Iterable[Callable[[], None]]) -> None:
    for task in tasks:
        task()
