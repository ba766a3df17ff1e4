"""Batching of concurrent adds: they share one round trip to the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import Final, TypeAlias

from ..errors import StoreUnavailable
from ..job.record import NewJob
from ..store.contract import Store
from ..store.doubt import in_doubt
from ..store.offers import BlockingAdds
from ..store.values import Added

Bundle: TypeAlias = Sequence[NewJob]

JOBS_PER_TRIP: Final = 1_000
TRIPS_AT_ONCE: Final = 2
"""Round trips at once: while the store executes one, the next is prepared."""
PAUSE_BEFORE_REPEAT: Final = 0.2


class Adds:
    """Sends a single add at once; adds made while trips are in flight gather, and the next trip carries them all.

    Belongs to the loop on which it was created.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Bundle, asyncio.Future[list[Added]]]] = []
        self._under_way = 0
        self._departs_soon = False
        self._trips: set[asyncio.Task[None]] = set()

    def add(self, bundle: Bundle) -> Awaitable[list[Added]]:
        """Adds a bundle. Await the result at once."""
        return self._gather(bundle) if self._under_way else self._go_alone(bundle)

    async def _go_alone(self, bundle: Bundle) -> list[Added]:
        self._under_way += 1
        try:
            # As `_send`, which would cost one more coroutine per add.
            return (await self._store.add([bundle]))[0]
        except StoreUnavailable as error:
            if not _is_lost(error):
                raise
            return (await self._repeat([bundle]))[0]
        finally:
            self._under_way -= 1
            if self._waiting:
                self._depart()

    def _gather(self, bundle: Bundle) -> asyncio.Future[list[Added]]:
        answer: asyncio.Future[list[Added]] = self._loop.create_future()
        self._waiting.append((bundle, answer))
        if self._under_way < TRIPS_AT_ONCE and not self._departs_soon:
            # On the next iteration: tasks woken by the same answer add in this one.
            self._departs_soon = True
            self._loop.call_soon(self._depart)
        return answer

    async def _send(self, bundles: Sequence[Bundle]) -> list[list[Added]]:
        try:
            return await self._store.add(bundles)
        except StoreUnavailable as error:
            if not _is_lost(error):
                raise
        return await self._repeat(bundles)

    async def _repeat(self, bundles: Sequence[Bundle]) -> list[list[Added]]:
        """Repeats a call whose answer was lost, with the same ids.

        What it finds then counts as created by the first try; a job that was there before, under an id of the caller's
        own, cannot be told from that.
        """
        await asyncio.sleep(PAUSE_BEFORE_REPEAT)
        with in_doubt():
            return [_by_first_try(answers) for answers in await self._store.add(bundles)]

    def _depart(self) -> None:
        self._departs_soon = False
        # Adds of cancelled callers are left out; at the end of a loop these are all.
        self._waiting = [(bundle, answer) for bundle, answer in self._waiting if not answer.done()]
        if self._waiting and self._under_way < TRIPS_AT_ONCE:
            self._under_way += 1
            trip = asyncio.create_task(self._carry(self._load()))
            self._trips.add(trip)
            trip.add_done_callback(self._trips.discard)

    def _load(self) -> list[tuple[Bundle, asyncio.Future[list[Added]]]]:
        jobs = 0
        for number, (bundle, _) in enumerate(self._waiting):
            jobs += len(bundle)
            if jobs > JOBS_PER_TRIP and number:
                load, self._waiting = self._waiting[:number], self._waiting[number:]
                return load
        load, self._waiting = self._waiting, []
        return load

    async def _carry(self, load: list[tuple[Bundle, asyncio.Future[list[Added]]]]) -> None:
        try:
            answers = await self._send([bundle for bundle, _ in load])
        except BaseException as error:
            for _, waiter in load:
                if not waiter.done():
                    waiter.set_exception(own_copy(error))
            if not isinstance(error, Exception):
                raise
        else:
            for (_, waiter), answer in zip(load, answers, strict=True):
                if not waiter.done():
                    waiter.set_result(answer)
        finally:
            self._under_way -= 1
            self._depart()


def add_blocking(store: BlockingAdds, bundle: Bundle) -> list[Added]:
    """Adds a bundle on a thread without an event loop, blocking."""
    try:
        return store.add_blocking([bundle])[0]
    except StoreUnavailable as error:
        if not _is_lost(error):
            raise
        time.sleep(PAUSE_BEFORE_REPEAT)
    with in_doubt():
        return _by_first_try(store.add_blocking([bundle])[0])


def _is_lost(error: StoreUnavailable) -> bool:
    """True if the answer was lost. Subclasses of the error mean that nothing was stored, after the store's retries."""
    return type(error) is StoreUnavailable


def _by_first_try(answers: Sequence[Added]) -> list[Added]:
    return [Added(answer.id, "created") if answer.verdict == "found" else answer for answer in answers]


def own_copy(error: BaseException) -> BaseException:
    """A copy for each waiter: one shared exception would collect the tracebacks of all."""
    if isinstance(error, asyncio.CancelledError):
        return asyncio.CancelledError(*error.args)
    copy = error.__class__.__new__(error.__class__)
    copy.args = error.args
    copy.__dict__.update(error.__dict__)
    copy.__cause__ = error
    return copy
