"""The portal: one background event loop per process, in a daemon thread, on which all sync calls run.

    any thread:  queue.sync.add(...)  ->  run(coroutine)  -- submit -->  portal thread: a task on its loop
                        ^ blocks until answered  <-------------------------------+

Because all threads share the loop, their adds share round trips to the store, as those of many tasks do. The loop has
its own store handles, which are closed when their queue is garbage-collected, or when Python ends.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, Generic, TypeVar, cast
from weakref import finalize

from ..errors import SyncRefused
from ..store.contract import Store

T = TypeVar("T")

LOOK_EVERY: Final = 0.5
"""Seconds after which a blocked call checks for Ctrl-C."""
END_LIMIT: Final = 5.0
"""Seconds that Python's exit waits for stores to be closed."""


class PortalLoop(asyncio.SelectorEventLoop):
    """Belongs to one process. A forked child inherits a copy without its thread, and never uses it.

    Both share the selector: a socket that the child removed from it would be missing in the parent.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        super().__init__()

    def __del__(self) -> None:
        if self._pid == os.getpid():
            super().__del__()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._pid == os.getpid():
            super().call_exception_handler(context)


class PendingCall(Generic[T]):
    """A submitted coroutine, and the thread that waits for its result."""

    __slots__ = ("_context", "_coroutine", "_error", "_is_cancelled", "_result", "_task", "answered")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._context = copy_context()
        self._result: T | None = None
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        # Half the cost of a concurrent.futures.Future, and Ctrl-C interrupts it too.
        self.answered = threading.Lock()
        self.answered.acquire()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._is_cancelled:
            self._task = loop.create_task(self._run(), context=self._context)

    def cancel(self) -> None:
        """Cancels the coroutine. Called on the loop, as `start` is."""
        self._is_cancelled = True
        if self._task is None:
            self._coroutine.close()
        else:
            self._task.cancel()
            # If the task never started, the coroutine has not started either.
            self._task.add_done_callback(lambda _: self._coroutine.close())

    def answer(self) -> T:
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # Its traceback references this frame.
                del error
        return cast(T, self._result)

    async def _run(self) -> None:
        try:
            self._result = await self._coroutine
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            if _is_ending:
                # Only daemon threads are left. They end with the process, and must not print errors.
                return
            self._error = error
        self.answered.release()


class Portal:
    """The background loop with its thread, its pending calls, and the stores to close at its end."""

    def __init__(self) -> None:
        self.loop = PortalLoop()
        self._calls: deque[PendingCall[Any]] = deque()
        self._is_woken = False
        self._stores: set[Store] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name="ropeway-portal", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.loop.close()
            raise SyncRefused(f"its background thread could not be started: {error}") from error
        self.thread_id = self._thread.ident

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        call = PendingCall(coroutine)
        try:
            self.submit(call)
            # In slices: a signal that arrives just before a wait begins is only handled when it ends.
            while not call.answered.acquire(timeout=LOOK_EVERY):
                # A signal may have interrupted another thread's `submit` between its two steps.
                self.loop.call_soon_threadsafe(self._start_calls)
        except BaseException:
            # Most likely Ctrl-C. Nobody waits for the result any more.
            self._forget(call)
            raise
        return call.answer()

    def submit(self, call: PendingCall[Any]) -> None:
        self._calls.append(call)
        # In this order: the loop resets the flag before it takes the calls, so none is missed.
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon_threadsafe(self._start_calls)

    def close_with(self, store: Store, owner: object) -> None:
        self._stores.add(store)
        finalize(owner, self.close_soon, store).atexit = False

    def end(self) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(END_LIMIT)

    def _forget(self, call: PendingCall[Any]) -> None:
        try:
            self.loop.call_soon_threadsafe(call.cancel)
            self.loop.call_soon_threadsafe(self._start_calls)
        except RuntimeError:
            # The loop was closed meanwhile.
            call.cancel()
            refuse_at_the_end()

    def close_soon(self, store: Store) -> None:
        """Closes a store. Also called by the garbage collector, on any thread; not effective in a forked child."""
        if self is _portal and not _is_ending:
            self.loop.call_soon_threadsafe(self._close, store)

    def forget(self, store: Store) -> None:
        self._stores.discard(store)

    def _close(self, store: Store) -> None:
        self._stores.discard(store)
        task = self.loop.create_task(store.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _start_calls(self) -> None:
        self._is_woken = False
        while self._calls:
            self._calls.popleft().start(self.loop)

    def _serve(self) -> None:
        self.loop.run_forever()
        self.loop.run_until_complete(self._shut_down())
        self.loop.close()

    async def _shut_down(self) -> None:
        while self._calls:
            self._calls.popleft().cancel()
        # One iteration, so that no task is cancelled before it has started.
        await asyncio.sleep(0)
        tasks = asyncio.all_tasks(self.loop) - {asyncio.current_task()} - self._closing
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        closes = [store.close() for store in self._stores]
        await asyncio.gather(*closes, *self._closing, return_exceptions=True)


_portal: Portal | None = None
_lock = threading.Lock()
_is_ending = False
_inherited: Final[list[Portal]] = []


def run(coroutine: Coroutine[Any, Any, T], instead: str | None = None) -> T:
    """Runs a coroutine on the background loop, blocks until it is done, and returns its result or raises its error.

    Ctrl-C in the main thread ends the wait at once, and cancels the coroutine. `instead` is the call that the error
    recommends on the thread of an event loop; by default the coroutine's own.
    """
    try:
        if is_on_a_loop():
            refuse_on_a_loop(instead or _call_of(coroutine))
        portal = _opened()
    except BaseException:
        coroutine.close()
        raise
    return portal.run(coroutine)


def run_in_background(coroutine: Coroutine[Any, Any, object]) -> None:
    """Runs a coroutine on the background loop, if there is one, without waiting: for clean-up, on any thread."""
    if _portal is None or _is_ending:
        coroutine.close()
    else:
        _portal.submit(PendingCall(coroutine))


async def run_on_portal(coroutine: Coroutine[Any, Any, T]) -> T:
    """Awaits, from any loop, a coroutine that must run on the background loop."""
    if is_portal_thread():
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, _opened().loop))


def is_portal_thread() -> bool:
    """True on the background loop's thread."""
    return _portal is not None and _portal.thread_id == threading.get_ident()


def close_with(store: Store, owner: object) -> None:
    """Closes a store of the background loop when its owner is garbage-collected, or Python ends."""
    _opened().close_with(store, owner)


def close_soon(store: Store) -> None:
    """Closes a store of the background loop now, without waiting for it."""
    if _portal is not None:
        _portal.close_soon(store)


def forget(store: Store) -> None:
    """Drops a store that was closed by other means."""
    if _portal is not None:
        _portal.forget(store)


def loop() -> asyncio.AbstractEventLoop | None:
    """The background loop; None if it was not needed yet."""
    return None if _portal is None else _portal.loop


def is_on_a_loop() -> bool:
    """True if this thread runs an event loop, which a sync call would block."""
    return asyncio._get_running_loop() is not None  # noqa: SLF001 - documented; raises nothing, and so costs nothing


def refuse_on_a_loop(instead: str) -> None:
    """Refuses a sync call on the thread of an event loop; `instead` is the call to recommend."""
    if is_on_a_loop():
        raise SyncRefused(
            f"this thread runs an event loop, which would be blocked: use `{instead}`, "
            "or make the sync call in another thread, as with asyncio.to_thread"
        )


_CALLED: Final = {"Task": "task", "JobType": "job_type", "Worker": "worker", "Queue": "queue"}


def _call_of(coroutine: Coroutine[Any, Any, Any]) -> str:
    """The call of a method as users write it: `await queue.find(...)`."""
    kind, _, method = getattr(coroutine, "__qualname__", "").rpartition(".")
    return f"await {_CALLED.get(kind, 'job')}.{method}(...)"


def _opened() -> Portal:
    global _portal  # noqa: PLW0603 - there is one in a process
    portal = _portal
    refuse_at_the_end()
    if portal is None:
        with _lock:
            portal = _portal = _portal or Portal()
    return portal


def refuse_at_the_end() -> None:
    if not _is_ending:
        return
    if threading.current_thread().daemon:
        # The interpreter is about to end it at any point; an error would only be printed.
        threading.Event().wait()
    raise SyncRefused("Python is ending, and the stores are closed: make the call before, or in an atexit function")


def _end() -> None:
    global _is_ending  # noqa: PLW0603
    _is_ending = True
    if _portal is not None:
        _portal.end()


def _after_fork() -> None:
    global _portal, _lock
    if _portal is not None:
        # Kept referenced: its objects belong to the parent, and the child must not finalize them.
        _inherited.append(_portal)
    _portal, _lock = None, threading.Lock()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
