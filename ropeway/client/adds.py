"""Adds that happen at the same time share one trip to the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final, TypeAlias

from ..errors import StoreBusy, StoreFull, StoreUnavailable
from ..job.record import NewJob
from ..store.contract import AddsHere, Store
from ..store.values import Added

Bundle: TypeAlias = Sequence[NewJob]

JOBS_PER_TRIP: Final = 1_000
PAUSE_BEFORE_REPEAT: Final = 0.2


class Adds:
    """A lone add waits for nobody; adds made while one is on its way gather, and the next trip carries them all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[tuple[Bundle, asyncio.Future[list[Added]]]] = []
        self._busy = False
        self._trip: asyncio.Task[None] | None = None

    async def add(self, bundle: Bundle) -> list[Added]:
        if self._busy:
            answer: asyncio.Future[list[Added]] = asyncio.get_running_loop().create_future()
            self._waiting.append((bundle, answer))
            return await answer
        self._busy = True
        try:
            return (await self._send([bundle]))[0]
        finally:
            self._depart()

    async def _send(self, bundles: Sequence[Bundle]) -> list[list[Added]]:
        """Repeats a call whose answer was lost, with the same ids.

        What it finds then counts as created by the first try; a job that was there before, under an id of the caller's
        own, cannot be told from that.
        """
        try:
            return await self._store.add(bundles)
        except (StoreBusy, StoreFull):
            raise
        except StoreUnavailable:
            await asyncio.sleep(PAUSE_BEFORE_REPEAT)
        return [_by_first_try(answers) for answers in await self._store.add(bundles)]

    def _depart(self) -> None:
        # Whoever was cancelled meanwhile is left behind; at the end of a loop that is everybody.
        self._waiting = [(bundle, answer) for bundle, answer in self._waiting if not answer.done()]
        self._busy = bool(self._waiting)
        if self._busy:
            self._trip = asyncio.create_task(self._carry(self._load()))

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
            self._depart()


def add_here(store: AddsHere, bundle: Bundle) -> list[Added]:
    """The same for a thread that has no loop, and waits."""
    try:
        return store.add_here([bundle])[0]
    except (StoreBusy, StoreFull):
        raise
    except StoreUnavailable:
        time.sleep(PAUSE_BEFORE_REPEAT)
    return _by_first_try(store.add_here([bundle])[0])


def _by_first_try(answers: Sequence[Added]) -> list[Added]:
    return [Added(answer.id, "created") if answer.verdict == "found" else answer for answer in answers]


def own_copy(error: BaseException) -> BaseException:
    """Each waiter raises it by itself: one shared exception would gather the tracebacks of all."""
    if isinstance(error, asyncio.CancelledError):
        return asyncio.CancelledError(*error.args)
    copy = error.__class__.__new__(error.__class__)
    copy.args = error.args
    copy.__dict__.update(error.__dict__)
    copy.__cause__ = error
    return copy
