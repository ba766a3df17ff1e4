"""Waiting claims: claims with a `wait`, from their sending to their answer, in the process that sent them.

    claim --> no job --> wait by a listener --> woken, a delayed job is due, or the wait is over --> claim again
                              ^
    withdraw (any thread) ----+--> answered, without another claim

Redis and SQLite also hold the claim where jobs are added, and serve it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ..job.instants import Milliseconds
from .commands import Claim, Withdraw
from .contract import Listener
from .values import Claimed

Ask: TypeAlias = Callable[[Claim], Awaitable[Claimed]]
"""Executes a claim that does not wait."""


class ClaimListener(Listener, Protocol):
    """A listener by which claims can wait."""

    @property
    def is_closed(self) -> bool: ...

    async def hold(self, request: Claim, timeout: float, /) -> Claimed | None:
        """Waits like `wait`. The answer if the store served the claim meanwhile, else None."""
        ...


L = TypeVar("L", bound=ClaimListener)


class WaitingClaim:
    """A claim while it waits: a context manager, inside which it can be withdrawn."""

    def __init__(self, request: Claim, interrupt: Callable[[], None]) -> None:
        """`interrupt` ends the wait in progress, if any; it is called on the running loop."""
        self.plain: Final = replace(request, wait=0)
        self.is_withdrawn = False
        self._interrupt = interrupt
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._end = self._began + request.wait / 1000

    def __enter__(self) -> Self:
        _waiting[self.plain.token] = self
        return self

    def __exit__(self, *_: object) -> None:
        # It may have been repeated meanwhile.
        if _waiting.get(self.plain.token) is self:
            del _waiting[self.plain.token]

    @property
    def left(self) -> float:
        """Seconds until its wait is over."""
        return max(0.0, self._end - self._loop.time())

    @property
    def waited(self) -> Milliseconds:
        return int((self._loop.time() - self._began) * 1000)

    def pause_after(self, claimed: Claimed) -> float:
        """Seconds until it looks again without a wake-up, after an answer without jobs."""
        return self.left if claimed.again_in is None else min(self.left, claimed.again_in)

    def withdraw(self) -> None:
        """Ends its wait, from any thread."""
        self.is_withdrawn = True
        with suppress(RuntimeError):  # Its loop may be closed: then nobody waits.
            self._loop.call_soon_threadsafe(self._interrupt)


_waiting: Final[dict[str, WaitingClaim]] = {}
"""The waiting claims of this process, by token."""


def end_wait(token: str) -> None:
    """Withdraws the claim of this token, if it waits in this process. From any thread."""
    if claim := _waiting.get(token):
        claim.withdraw()


def held_by(command: Withdraw) -> Claim:
    """A claim that takes nothing, and answers the jobs that are active under the token."""
    return Claim(command.queue, command.worker, command.token, 0, 0, repeat=True)


class ClaimListeners(Generic[L]):
    """The listeners by which waiting claims of one store handle wait."""

    def __init__(self) -> None:
        self._of_workers: WeakValueDictionary[tuple[str, str], L] = WeakValueDictionary()

    def note(self, queue: str, worker: str, listener: L) -> L:
        self._of_workers[queue, worker] = listener
        return listener

    @contextmanager
    def of(self, request: Claim, listen: Callable[[str], L]) -> Iterator[tuple[L, bool]]:
        """The listener for a claim, and whether the claim must look for jobs before it waits by it."""
        listener = self._of_workers.get((request.queue, request.worker))
        if listener is not None and not listener.is_closed:
            yield listener, request.repeat
            return
        listener = listen(request.queue)
        try:
            yield listener, True
        finally:
            listener.close()

    async def claim(self, request: Claim, ask: Ask, listen: Callable[[str], L]) -> Claimed:
        """Executes a waiting claim; `listen` makes a listener to the jobs of a queue."""
        with self.of(request, listen) as (listener, looks):
            return await _claim(request, ask, listener, looks)


async def _claim(request: Claim, ask: Ask, listener: ClaimListener, looks: bool) -> Claimed:
    """Claims until there are jobs, the wait is over, or the claim is withdrawn."""
    with WaitingClaim(request, listener.interrupt) as this:
        answer, pause = Claimed([], 0), this.left
        while True:
            sent, is_last = this.waited, looks and not this.left
            if looks:
                answer = await ask(this.plain)
            else:
                held = None if listener.is_closed else await listener.hold(this.plain, pause)
                if held is None:
                    if this.is_withdrawn or listener.is_closed:
                        return answer
                    looks = True
                    continue
                answer = held
            if answer.jobs or is_last or this.is_withdrawn:
                return replace(answer, waited=sent + answer.waited)
            looks, pause = False, this.pause_after(answer)
