"""Hedged requests: if one server is slow, the next is asked too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from ...errors import StoreError

T = TypeVar("T")


async def first_answer(calls: Iterable[Callable[[], Coroutine[Any, Any, T]]], head_start: float) -> T:
    """Makes the next call when all before it failed, or after `head_start` seconds without an answer.

    The first answer ends the others. If all fail, raises the error of the last one that did.
    """
    trouble: StoreError | None = None
    left = iter(calls)
    under_way: set[asyncio.Task[T]] = set()
    try:
        while (call := next(left, None)) is not None or under_way:
            if call is not None:
                under_way.add(asyncio.create_task(call()))
            timeout = None if call is None else head_start
            done, under_way = await asyncio.wait(under_way, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    return task.result()
                except StoreError as error:
                    trouble = error
    finally:
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)
    assert trouble is not None, "there is somebody to ask"
    raise trouble
