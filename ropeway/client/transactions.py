"""Blocks that end in a commit, or in a rollback if they raise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from ..logger import log
from ..store.contract import Store
from ..store.transactions import BlockingInside, Inside, sharing
from .portal import run

T = TypeVar("T")


@asynccontextmanager
async def own_transaction(store: Store, queue: str) -> AsyncIterator[Any]:
    sharer = sharing(store)
    await sharer.prepare(queue)
    inside = sharer.own()
    tx = await inside.begin()
    try:
        yield tx
        await to_its_end(inside.commit())
    except BaseException:
        await undo(inside)
        raise


@contextmanager
def own_transaction_blocking(store: Store, queue: str) -> Iterator[Any]:
    sharer = sharing(store)
    run(sharer.prepare(queue))
    inside = sharer.own_blocking()
    try:
        # Inside: a signal may come when it has just begun.
        yield inside.begin()
        inside.commit()
    except BaseException:
        try:
            undo_blocking(inside)
        finally:
            # Once more: a second signal may have come in its middle, or as its first step.
            undo_blocking(inside)
        raise


async def undo(inside: Inside) -> None:
    """After an error, which says more than that of a rollback would: a connection that ended is rolled back by that."""
    try:
        await to_its_end(inside.roll_back())
    except Exception as error:  # noqa: BLE001 - whatever its driver raises
        log.warning("the rollback of a transaction failed: %s", error)


def undo_blocking(inside: BlockingInside) -> None:
    try:
        inside.roll_back()
    except Exception as error:  # noqa: BLE001 - whatever its driver raises
        log.warning("the rollback of a transaction failed: %s", error)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits it, and is not cancelled before it is done: of a commit that was broken off, nobody knows the outcome."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            # Who cancels once more is told by the first.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            # What it raised is told by the log of asyncio otherwise.
            task.exception()
        raise
