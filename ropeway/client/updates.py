"""Batching of concurrent updates of a queue's running jobs: they share one round trip to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, TypeAlias

from ..errors import StoreUnavailable
from ..store.contract import Store
from ..store.values import Answer, JobUpdate
from .adds import own_copy

UPDATES_PER_TRIP: Final = 500

Waiting: TypeAlias = "tuple[JobUpdate, asyncio.Future[Answer]]"


class Updates:
    """Sends a single update at once; those made while it is in flight gather, and the next trip carries them all.

    One trip at a time, so updates take effect in the order in which they were made. Belongs to the loop on which it was
    created.
    """

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Waiting] = []
        self._is_under_way = False
        self._trip: asyncio.Task[None] | None = None

    def send(self, change: JobUpdate) -> Awaitable[Answer]:
        """Sends an update. Await the result at once."""
        return self._gather(change) if self._is_under_way else self._go_alone(change)

    async def _go_alone(self, change: JobUpdate) -> Answer:
        self._is_under_way = True
        try:
            [answer] = await self._store.update(self._queue, [change])
            return answer
        finally:
            self._is_under_way = False
            self._depart()

    def _gather(self, change: JobUpdate) -> asyncio.Future[Answer]:
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting.append((change, answer))
        return answer

    def _depart(self) -> None:
        # Updates of cancelled callers are left out; at the end of a loop these are all.
        self._waiting = [(change, answer) for change, answer in self._waiting if not answer.done()]
        if self._waiting and not self._is_under_way:
            self._is_under_way = True
            self._trip = asyncio.create_task(self._carry())

    async def _carry(self) -> None:
        load: list[Waiting] = []
        try:
            # Tasks woken by the same answers update in this iteration of the loop.
            await asyncio.sleep(0)
            load = self._load()
            answers = await self._store.update(self._queue, [change for change, _ in load])
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, StoreUnavailable) and len(load) > 1:
                await self._one_by_one(load)
            else:
                for _, waiter in load:
                    _fail(waiter, error)
                if not isinstance(error, Exception):
                    raise
        else:
            for (_, waiter), answer in zip(load, answers, strict=True):
                if not waiter.done():
                    waiter.set_result(answer)
        finally:
            self._is_under_way = False
            self._depart()

    async def _one_by_one(self, load: Sequence[Waiting]) -> None:
        """After a refusal: what one of them has wrong must not fail the others."""
        for change, waiter in load:
            try:
                [answer] = await self._store.update(self._queue, [change])
            except Exception as error:  # noqa: BLE001 - reported to its caller
                _fail(waiter, error)
            else:
                if not waiter.done():
                    waiter.set_result(answer)

    def _load(self) -> list[Waiting]:
        """The first one, and those that can go with it.

        Entries of one kind may be merged in the stream, so only updates that announce the same, or nothing, share a
        trip: otherwise a job's events could change their order.
        """
        kinds: tuple[str, ...] = ()
        load: list[Waiting] = []
        left: list[Waiting] = []
        later: set[str] = set()
        for waiting in self._waiting:
            change, _ = waiting
            announced = tuple([notice.what for notice in change.marking.notices]) if change.marking else ()
            is_other = bool(announced and kinds and announced != kinds)
            if is_other or change.id in later or len(load) == UPDATES_PER_TRIP:
                later.add(change.id)
                left.append(waiting)
            else:
                kinds = announced or kinds
                load.append(waiting)
        self._waiting = left
        return load


def _fail(waiter: asyncio.Future[Answer], error: BaseException) -> None:
    if not waiter.done():
        waiter.set_exception(own_copy(error))
