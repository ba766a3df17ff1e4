"""Batching of concurrent updates of a queue's running jobs: they share one round trip to the store.

    handlers A and B update at once:   store:    | A    | B    | A    | B    |
                                       handlers:        | A    | B    | A    | B

Where it pays (`Offers.side_by_side_from`), a first load of many is divided. The other half leaves when that trip has
returned, before its answers are given out. So the store works on one half while the handlers of the other go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ..errors import StoreUnavailable
from ..store.contract import Store
from ..store.values import Answer, JobUpdate
from .adds import own_copy

if TYPE_CHECKING:
    from .queue import Queue

UPDATES_PER_TRIP: Final = 500
DIVIDED_FROM: Final = 4
"""Updates are split in two from this many times `Offers.side_by_side_from` on: one is less work than an outcome."""


class UnawaitedUpdate:
    """An update that nobody waits for: it is its own waiter. It can be withdrawn until it is sent, or if that fails."""

    is_sent = False
    is_withdrawn = False
    _answer: Answer | None = None
    _error: BaseException | None = None
    _waiters: list[asyncio.Future[None]] | None = None

    def _refused(self, answer: Answer) -> None:
        """Called with the answer, if that is not `done`."""
        raise NotImplementedError

    def withdraw(self) -> bool:
        """Takes the update back, so that the caller can make it together with another. True at most once."""
        if self.is_withdrawn or (self.is_sent and self._error is None):
            return False
        self.is_withdrawn = True
        return True

    def put_back(self, error: BaseException) -> None:
        """Undoes `withdraw`: the update that was to take it along failed, and may have been carried out."""
        self.is_withdrawn, self.is_sent, self._error = False, True, error

    async def answer(self) -> Answer:
        """Its answer; wait for it only if it was not withdrawn."""
        if not self._is_answered:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters = [*(self._waiters or ()), waiter]
            await waiter
        if self._answer is None:
            assert self._error is not None, "it was answered"
            raise own_copy(self._error)
        return self._answer

    @property
    def is_confirmed(self) -> bool:
        """True if the store has carried it out."""
        return self._answer is not None and self._answer.verdict == "done"

    @property
    def _is_answered(self) -> bool:
        return self._answer is not None or self._error is not None

    def done(self) -> bool:
        """True if it need not be sent."""
        return self.is_withdrawn or self._is_answered

    def set_result(self, answer: Answer) -> None:
        self._answer = answer
        self._wake()
        if answer.verdict != "done":
            self._refused(answer)

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters or ():
            if not waiter.done():
                waiter.set_result(None)


class Waiter(Protocol):
    """What gets the answer to an update: a future, or anything with these methods of one."""

    def done(self) -> bool: ...
    def set_result(self, answer: Answer, /) -> None: ...
    def set_exception(self, error: BaseException, /) -> None: ...


Waiting: TypeAlias = tuple[JobUpdate, Waiter]
EnqueueUpdate: TypeAlias = "Callable[[Queue, JobUpdate, Waiter], None]"
"""Sends an update of a queue's job with some later trip."""


class UpdateLine:
    """Updates that wait for a trip to the store, oldest first."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def append(self, change: JobUpdate, waiter: Waiter) -> None:
        self._waiting.append((change, waiter))

    def prune(self) -> None:
        """Drops updates whose waiters need no answer any more: their callers were cancelled."""
        self._waiting = [waiting for waiting in self._waiting if not waiting[1].done()]

    def take(self, most: int = UPDATES_PER_TRIP) -> list[Waiting]:
        """Takes the updates that one trip carries; their waiters need an answer."""
        self.prune()
        load, self._waiting = self._waiting[:most], self._waiting[most:]
        for _, waiter in load:
            if isinstance(waiter, UnawaitedUpdate):
                waiter.is_sent = True
        return load


def _nothing() -> None: ...


async def carry(store: Store, queue: str, load: Sequence[Waiting], arrived: Callable[[], None] = _nothing) -> None:
    """Makes one trip with updates, and answers each. `arrived` is called before that, when the trip is over."""
    try:
        answers = await store.update(queue, [change for change, _ in load]) if load else []
    except Exception as error:  # noqa: BLE001 - reported to the callers
        await _refuse(store, queue, load, error)
        arrived()
    except BaseException as error:
        for _, waiter in load:
            _fail(waiter, error)
        arrived()
        raise
    else:
        arrived()
        for (_, waiter), answer in zip(load, answers, strict=True):
            if not waiter.done():
                waiter.set_result(answer)


class Updates:
    """Sends a single update at once; those made while it is in flight gather, and the next trip carries them all.

    One trip at a time, so updates take effect in the order in which they were made. Belongs to the loop on which it was
    created.
    """

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._line = UpdateLine()
        self._is_under_way = False
        self._is_shared = False
        """True if the last trip carried several: those who got its answers are likely to update together again."""
        self._trip: asyncio.Task[None] | None = None

    def send(self, change: JobUpdate) -> Awaitable[Answer]:
        """Sends an update. Await the result at once."""
        if not self._is_under_way and not self._is_shared:
            return self._go_alone(change)
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self.enqueue(change, answer)
        return answer

    def enqueue(self, change: JobUpdate, waiter: Waiter) -> None:
        """Sends an update with the next trip; its answer is set as that of the waiter, unless that is done."""
        self._line.append(change, waiter)
        if not self._is_under_way:
            self._depart()

    async def _go_alone(self, change: JobUpdate) -> Answer:
        self._is_under_way = True
        try:
            [answer] = await self._store.update(self._queue, [change])
            return answer
        finally:
            self._arrive()

    def _depart(self, *, gathers: bool = True) -> None:
        self._line.prune()
        if self._line and not self._is_under_way:
            self._is_under_way = True
            self._trip = asyncio.create_task(self._make_trip(gathers))

    def _arrive(self, load: int = 1) -> None:
        """Sends the next trip, if updates wait for it: at once if that carries as many as the one that returned."""
        self._is_under_way = False
        if self._line:
            is_other_half = len(self._line) >= max(load, DIVIDED_FROM * self._store.offers.side_by_side_from // 2)
            self._depart(gathers=not is_other_half)

    async def _make_trip(self, gathers: bool) -> None:
        load: list[Waiting] = []
        try:
            if gathers:
                await self._gather()
            load = self._load(divides=gathers)
        except BaseException:
            self._arrive()
            raise
        self._is_shared = len(load) > 1
        await carry(self._store, self._queue, load, lambda: self._arrive(len(load)))

    async def _gather(self) -> None:
        """Waits while each iteration of the loop brings more: tasks that were woken together update in turn."""
        number = -1
        while number < len(self._line) < UPDATES_PER_TRIP:
            number = len(self._line)
            await asyncio.sleep(0)

    def _load(self, *, divides: bool) -> list[Waiting]:
        """Those that the next trip carries."""
        self._line.prune()
        number = len(self._line)
        if divides and number >= DIVIDED_FROM * self._store.offers.side_by_side_from:
            return self._line.take(min(UPDATES_PER_TRIP, number // 2))
        return self._line.take()


def enqueue_update(queue: Queue, change: JobUpdate, waiter: Waiter) -> None:
    queue.updates.enqueue(change, waiter)


async def _refuse(store: Store, queue: str, load: Sequence[Waiting], error: Exception) -> None:
    if isinstance(error, StoreUnavailable) or len(load) == 1:
        for _, waiter in load:
            _fail(waiter, error)
        return
    # What one of them has wrong must not fail the others.
    for change, waiter in load:
        try:
            [answer] = await store.update(queue, [change])
        except Exception as reason:  # noqa: BLE001 - reported to its caller
            _fail(waiter, reason)
        else:
            if not waiter.done():
                waiter.set_result(answer)


def _fail(waiter: Waiter, error: BaseException) -> None:
    if not waiter.done():
        waiter.set_exception(own_copy(error))
