"""Listeners, which are woken directly in their own process, and by pipes from others.

A listener may park a claim with the writer, which executes it in the transaction that adds jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from ...errors import StoreClosed
from ...store.commands import Claim
from ...store.values import Claimed, Topic
from .calls import AwaitedCall, Call, deliver
from .claiming import serve
from .pipes import Key, Pipe, RemoteWaker

POLL_EVERY: Final = 0.1
"""Seconds between two polls, on systems without pipes."""

LOOK_EVERY: Final = 4.0
"""Seconds between two looks at the pipes: less than a safety poll."""

DataVersion: TypeAlias = Callable[[], Awaitable[int]]
"""Returns a number that changes with every commit of others."""


class ParkedClaim(AwaitedCall[Claimed | None]):
    """A claim that is parked with the writer, until the writer takes it or the listener unparks it."""

    __slots__ = ("is_taken", "listener", "queue", "token")

    def __init__(self, request: Claim, listener: FileListener) -> None:
        super().__init__(serve, (request, time.monotonic()), is_durable=False)
        self.queue, self.token, self.listener = request.queue, request.token, listener
        self.is_taken = False

    def deliver(self) -> None:
        # Without an answer the listener claims again, and meets the error there.
        self.error = None
        super().deliver()


class ListenerGroup:
    """The listeners of one process on one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = f"{path}-wake"
        self._remote = RemoteWaker(self.folder)
        self._listeners: dict[Key, set[FileListener]] = {}
        self._parked: dict[str, list[ParkedClaim]] = {}
        self._lock = threading.Lock()
        self._remote_lock = threading.Lock()
        """Held to use `_remote`: by the writer, and by threads that put jobs into the inbox."""
        self.write: Callable[[Call[Any]], None] | None = None
        """Passes a call to the writer; None until there is one."""

    def listen(self, topic: Topic, queues: Sequence[str], data_version: DataVersion) -> FileListener:
        listener = FileListener(self, [(topic, queue) for queue in queues], data_version)
        with self._lock:
            for queue in queues:
                self._listeners.setdefault((topic, queue), set()).add(listener)
        # After that: a commit between the two would find neither.
        listener.make_pipes(self.folder)
        return listener

    def forget(self, listener: FileListener) -> None:
        with self._lock:
            for key in listener.keys:
                listeners = self._listeners.get(key, set())
                listeners.discard(listener)
                if not listeners:
                    self._listeners.pop(key, None)

    def park(self, parked: ParkedClaim) -> None:
        with self._lock:
            self._parked.setdefault(parked.queue, []).append(parked)

    def has_parked_claim(self, queue: str) -> bool:
        """True if a claim is parked for the queue, as far as can be said without the lock."""
        return queue in self._parked

    def take_parked(self, queue: str, claims: list[ParkedClaim]) -> None:
        """Appends the parked claims of a queue to `claims`. The writer that takes one must deliver it."""
        if queue not in self._parked:
            return
        with self._lock:
            # In this order: a signal in between must leave none of them in nobody's hands, nor in two's.
            for parked in self._parked.get(queue, ()):
                if not parked.is_taken:
                    claims.append(parked)
                    parked.is_taken = True
            self._parked.pop(queue, None)

    def unpark(self, parked: ParkedClaim) -> bool:
        """Withdraws a parked claim; False if the writer has taken it."""
        with self._lock:
            others = self._parked.get(parked.queue, [])
            if parked not in others or parked.is_taken:
                return False
            others.remove(parked)
            if not others:
                del self._parked[parked.queue]
            return True

    def withdraw(self, queue: str, token: str) -> None:
        """Ends a parked claim without an answer, from any thread, unless the writer has taken it."""
        if queue in self._parked:
            with self._lock:
                found = [parked for parked in self._parked.get(queue, ()) if parked.token == token]
            deliver([parked for parked in found if self.unpark(parked)])

    def local_listeners(self, keys: Iterable[tuple[Topic, str]]) -> list[FileListener]:
        """Returns listeners of this process to be woken in their loops; those without one are woken on the spot."""
        if not self._listeners:
            return []
        with self._lock:
            return [listener for key in keys for listener in self._listeners.get(key, ()) if listener.is_attached()]

    def wake_remote_claimers(self, keys: Iterable[tuple[Topic, str]]) -> None:
        """Wakes known claimers of other processes before a commit: their claims wait for its end anyway."""
        with self._remote_lock:
            self._remote.wake(keys)

    def wake_remote(self, keys: Iterable[tuple[Topic, str]]) -> None:
        """Wakes all others, after a commit. Listeners that come later see what was written."""
        with self._remote_lock:
            others = self._remote.look()
            self._remote.wake(key for key in keys if others or key[0] != "jobs")

    def wake_all(self, keys: Sequence[tuple[Topic, str]]) -> None:
        """Wakes listeners of this process and of others, without a commit."""
        if woken := self.local_listeners(keys):
            deliver((), woken)
        with self._remote_lock:
            self._remote.look()
            self._remote.wake(keys)

    def close(self) -> None:
        with self._remote_lock:
            self._remote.close()


class FileListener:
    """A listener. It belongs to the event loop that first waits for it."""

    def __init__(self, wakes: ListenerGroup, keys: Sequence[tuple[Topic, str]], data_version: DataVersion) -> None:
        self.keys = keys
        self._group = wakes
        self._data_version = data_version
        self._seen_version = -1
        self._pipes: list[Pipe] = []
        self._has_pipes = False
        self._can_have_pipes = True
        """False if the system has no pipes, or the event loop cannot read them."""
        self._looked_at = -LOOK_EVERY
        self._is_woken = False
        self.is_closed = False
        self._waiters: set[asyncio.Future[bool]] = set()
        self._parked: set[ParkedClaim] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "asked only of attached listeners"
        return self._loop

    def make_pipes(self, folder: str) -> None:
        try:
            for topic, queue in self.keys:
                self._pipes.append(Pipe(folder, topic, queue))
            self._has_pipes = True
        except OSError as error:
            self._can_have_pipes = error.errno != errno.ENOSYS
            self._close_pipes()

    def is_attached(self) -> bool:
        """True if an event loop must wake it. Without one nobody waits, and a flag is enough."""
        if self._loop is None:
            self._is_woken = True
        return self._loop is not None

    def wake(self) -> None:
        if self.is_closed:
            return
        self._is_woken = True
        _end(self._waiters, woken=True)
        for parked in self._parked:
            if self._group.unpark(parked):
                assert self._group.write is not None, "or it could not have been left"
                self._group.write(parked)
                self._is_woken = False

    async def wait(self, timeout: float | None = None) -> bool:
        self._attach(asyncio.get_running_loop())
        self._look_after_pipes()
        if not self._has_pipes:
            return await self._poll(timeout)
        return await self._sleep(timeout)

    async def hold(self, request: Claim, timeout: float) -> Claimed | None:
        """Waits like `wait`, and parks the claim with the writer meanwhile."""
        self._attach(asyncio.get_running_loop())
        self._look_after_pipes()
        if self._is_woken or self.is_closed or not self._has_pipes or self._group.write is None:
            await self.wait(timeout)
            return None
        parked = ParkedClaim(request, self)
        timer = self.loop.call_later(timeout, self._unpark, parked)
        self._parked.add(parked)
        self._group.park(parked)
        try:
            return await parked.future
        finally:
            timer.cancel()
            self._unpark(parked)
            self._parked.discard(parked)

    def interrupt(self) -> None:
        _end(self._waiters, woken=False)
        for parked in self._parked:
            self._unpark(parked)

    def close(self) -> None:
        """Closes it, on any thread. In a forked child it is only marked: pipes and selector are the parent's."""
        self.is_closed = True
        if self._pid != os.getpid():
            return
        self._group.forget(self)
        if self._loop is None or self._loop is asyncio._get_running_loop():  # noqa: SLF001 - documented, and cheap
            self._end()
            return
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:
            # The loop was closed, and nobody waits on it.
            self._close_pipes()

    def _end(self) -> None:
        self._close_pipes()
        self.interrupt()

    def _unpark(self, parked: ParkedClaim) -> None:
        """Ends a parked claim without an answer, unless the writer executes it just now."""
        if self._group.unpark(parked):
            parked.deliver()

    async def _sleep(self, timeout: float | None) -> bool:
        if not self._is_woken and not self.is_closed:
            waiter = self.loop.create_future()
            timer = None if timeout is None else self.loop.call_later(timeout, _end, [waiter])
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
                if timer:
                    timer.cancel()
        was_woken, self._is_woken = self._is_woken, False
        return was_woken

    async def _poll(self, timeout: float | None) -> bool:
        end = None if timeout is None else self.loop.time() + timeout
        while not self.is_closed:
            version = await self._data_version()
            if version != self._seen_version:
                # The first time nobody knows what happened since the listener was made.
                self._seen_version = version
                self._is_woken = False
                return True
            rest = POLL_EVERY if end is None else min(POLL_EVERY, end - self.loop.time())
            if await self._sleep(max(rest, 0)):
                return True
            if end is not None and self.loop.time() >= end:
                break
        return False

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._pid != os.getpid():
            raise StoreClosed(self._group.path, "this listener was made before a fork: listen again")
        if self._loop is loop:
            return
        self._loop = loop
        self._read_pipes(loop)

    def _read_pipes(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for pipe in self._pipes:
                loop.add_reader(pipe.fd, self._empty_pipes)
        except NotImplementedError:
            self._has_pipes = self._can_have_pipes = False
            self._close_pipes()

    def _look_after_pipes(self) -> None:
        """Empties the pipes, and now and then checks that others can still find them."""
        self._empty_pipes()
        now = self.loop.time()
        if now - self._looked_at < LOOK_EVERY or self.is_closed:
            return
        self._looked_at = now
        is_whole = len(self._pipes) == len(self.keys) and all(pipe.is_named for pipe in self._pipes)
        if self._can_have_pipes and not is_whole:
            had_pipes, self._has_pipes = self._has_pipes, False
            self._close_pipes()
            self.make_pipes(self._group.folder)
            self._read_pipes(self.loop)
            if had_pipes or self._has_pipes:
                # Wake-ups in between were lost.
                self._is_woken = True

    def _empty_pipes(self) -> None:
        # All of them, not only until the first that has something.
        if any([pipe.empty() for pipe in self._pipes]):  # noqa: C419
            self.wake()

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            if self._loop and pipe.fd >= 0:
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    self._loop.remove_reader(pipe.fd)
            pipe.close()
        self._pipes.clear()


def _end(waiters: Iterable[asyncio.Future[bool]], *, woken: bool = False) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(woken)
