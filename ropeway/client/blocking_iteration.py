"""Iterating over what comes from the background loop, in code without an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import TypeVar

from .portal import run, run_in_background

T = TypeVar("T")


def iterate(make: Callable[[], AsyncGenerator[T, None]], instead: str) -> Generator[T, None, None]:
    """The items of what `make` returns; it is called on the background loop, with that loop's store handles.

    `instead` says what to write on a thread that has an event loop.
    """
    items = run(_made(make), instead)
    try:
        while (item := run(_next(items), instead)) is not None:
            yield item
    except GeneratorExit:
        # Perhaps called by the garbage collector, on a thread that must not block.
        run_in_background(items.aclose())
        raise


async def _made(make: Callable[[], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    return make()


async def _next(items: AsyncGenerator[T, None]) -> T | None:
    return await anext(items, None)
