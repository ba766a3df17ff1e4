"""Context managers for store transactions: commit at the end, rollback if the block raises."""

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
        # Inside the try: a KeyboardInterrupt may come right after it.
        yield inside.begin()
        inside.commit()
    except BaseException:
        try:
            undo_blocking(inside)
        finally:
            # Again: a second KeyboardInterrupt may have interrupted the first call.
            undo_blocking(inside)
        raise


async def undo(inside: Inside) -> None:
    """Rolls back after an error. An error of the rollback is only logged: the first one says more."""
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
    """Awaits a commit to its end even if the caller is cancelled: an interrupted commit has an unknown outcome."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            # A second cancel is covered by the first.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            # Retrieves the error, which asyncio would log otherwise.
            task.exception()
        raise
