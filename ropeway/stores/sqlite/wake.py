"""Listeners, and who wakes them: directly in their own process, by pipes in others.

A listener may leave a claim with the writer, which serves it in the transaction that brings the jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from ...errors import StoreClosed
from ...store.commands import Claim
from ...store.values import Served, Topic
from .claiming import serve
from .lane import AwaitedCall, Call, deliver
from .pipes import Bells, Key, Pipe

POLL_EVERY: Final = 0.1
"""Seconds, where there are no pipes."""

LOOK_EVERY: Final = 4.0
"""Seconds between two looks at the pipes: less than a safety poll."""

DataVersion: TypeAlias = Callable[[], Awaitable[int]]
"""Answers a number that changes with every commit of others."""


class Standing(AwaitedCall[Served | None]):
    """A claim that was left with the writer, until the writer takes it to serve it or the listener takes it back."""

    __slots__ = ("is_taken", "listener", "queue")

    def __init__(self, request: Claim, listener: FileListener) -> None:
        super().__init__(serve, (request,), is_durable=False)
        self.queue, self.listener = request.queue, listener
        self.is_taken = False

    def deliver(self) -> None:
        # Who gets no answer claims anew, and meets the error there.
        self.error = None
        super().deliver()


class Wakes:
    """The listeners of one process on one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = f"{path}-wake"
        self._bells = Bells(self.folder)
        self._listeners: dict[Key, set[FileListener]] = {}
        self._standing: dict[str, list[Standing]] = {}
        self._lock = threading.Lock()
        self._ringing = threading.Lock()
        """The writer rings, and so does whoever puts a job into the inbox on a thread of his own."""
        self.write: Callable[[Call[Any]], None] | None = None
        """Gives the writer a call, once there is a writer."""

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

    def leave(self, standing: Standing) -> None:
        with self._lock:
            self._standing.setdefault(standing.queue, []).append(standing)

    def is_awaited(self, queue: str) -> bool:
        """Whether a claim stands for it, as far as can be said without waiting for the lock."""
        return queue in self._standing

    def take(self, queue: str, taken: list[Standing]) -> None:
        """Gives the claims that stand for a queue to the writer: whoever takes one must deliver it."""
        if queue not in self._standing:
            return
        with self._lock:
            # In this order: a signal in between must leave none of them in nobody's hands, nor in two's.
            for standing in self._standing.get(queue, ()):
                if not standing.is_taken:
                    taken.append(standing)
                    standing.is_taken = True
            self._standing.pop(queue, None)

    def take_back(self, standing: Standing) -> bool:
        """False if the writer has taken it."""
        with self._lock:
            others = self._standing.get(standing.queue, [])
            if standing not in others or standing.is_taken:
                return False
            others.remove(standing)
            if not others:
                del self._standing[standing.queue]
            return True

    def near(self, keys: Iterable[tuple[Topic, str]]) -> list[FileListener]:
        """The listeners of this process. Those of no loop yet are woken on the spot."""
        if not self._listeners:
            return []
        with self._lock:
            return [listener for key in keys for listener in self._listeners.get(key, ()) if listener.is_attached()]

    def warn_far(self, keys: Iterable[tuple[Topic, str]]) -> None:
        """Before a commit: wakes the claimers that are known. A claim is a write, and waits for the commit's end."""
        with self._ringing:
            self._bells.ring(keys)

    def ring_far(self, keys: Iterable[tuple[Topic, str]]) -> None:
        """After it: wakes everybody else. Whoever begins to listen later sees what was written."""
        with self._ringing:
            others = self._bells.look()
            self._bells.ring(key for key in keys if others or key[0] != "jobs")

    def wake_all(self, keys: Sequence[tuple[Topic, str]]) -> None:
        """Everybody, near and far, where nobody was warned before."""
        if woken := self.near(keys):
            deliver((), woken)
        with self._ringing:
            self._bells.look()
            self._bells.ring(keys)

    def close(self) -> None:
        with self._ringing:
            self._bells.close()


class FileListener:
    """Belongs to the loop that first waits."""

    def __init__(self, wakes: Wakes, keys: Sequence[tuple[Topic, str]], data_version: DataVersion) -> None:
        self.keys = keys
        self._wakes = wakes
        self._data_version = data_version
        self._seen_version = -1
        self._pipes: list[Pipe] = []
        self._has_pipes = False
        self._can_have_pipes = True
        """False where the system has none, or the loop cannot hear them."""
        self._looked_at = -LOOK_EVERY
        self._is_woken = False
        self.is_closed = False
        self._waiters: set[asyncio.Future[bool]] = set()
        self._standing: set[Standing] = set()
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
        """Whether a loop must do the waking; without one nobody waits, and a note is enough."""
        if self._loop is None:
            self._is_woken = True
        return self._loop is not None

    def wake(self) -> None:
        if self.is_closed:
            return
        self._is_woken = True
        _end(self._waiters, woken=True)
        for standing in self._standing:
            if self._wakes.take_back(standing):
                assert self._wakes.write is not None, "or it could not have been left"
                self._wakes.write(standing)
                self._is_woken = False

    async def wait(self, timeout: float | None = None) -> bool:
        self._attach(asyncio.get_running_loop())
        self._look_after_pipes()
        if not self._has_pipes:
            return await self._poll(timeout)
        return await self._sleep(timeout)

    async def claim(self, request: Claim, timeout: float | None = None) -> Served | None:
        self._attach(asyncio.get_running_loop())
        self._look_after_pipes()
        if self._is_woken or self.is_closed or not self._has_pipes or self._wakes.write is None:
            await self.wait(timeout)
            return None
        standing = Standing(request, self)
        timer = None if timeout is None else self.loop.call_later(timeout, self._take_back, standing)
        self._standing.add(standing)
        self._wakes.leave(standing)
        try:
            return await standing.future
        finally:
            if timer:
                timer.cancel()
            self._take_back(standing)
            self._standing.discard(standing)

    def interrupt(self) -> None:
        _end(self._waiters, woken=False)
        for standing in self._standing:
            self._take_back(standing)

    def close(self) -> None:
        """On any thread. In a forked child it only looks closed: its pipes and its loop's selector are the parent's."""
        self.is_closed = True
        if self._pid != os.getpid():
            return
        self._wakes.forget(self)
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

    def _take_back(self, standing: Standing) -> None:
        """Unless the writer serves it just now: then its answer is on the way."""
        if self._wakes.take_back(standing):
            standing.deliver()

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
            raise StoreClosed(self._wakes.path, "this listener was made before a fork: listen again")
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
        """Empties them, and now and then sees whether others can still find them."""
        self._empty_pipes()
        now = self.loop.time()
        if now - self._looked_at < LOOK_EVERY or self.is_closed:
            return
        self._looked_at = now
        is_whole = len(self._pipes) == len(self.keys) and all(pipe.is_named for pipe in self._pipes)
        if self._can_have_pipes and not is_whole:
            had_pipes, self._has_pipes = self._has_pipes, False
            self._close_pipes()
            self.make_pipes(self._wakes.folder)
            self._read_pipes(self.loop)
            if had_pipes or self._has_pipes:
                # Whoever rang meanwhile was not heard.
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
