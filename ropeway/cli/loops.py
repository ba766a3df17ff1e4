"""The choice of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, TypeAlias, TypeVar

import click

T = TypeVar("T")

LoopName: TypeAlias = Literal["auto", "asyncio", "uvloop"]
LOOPS: Final[tuple[LoopName, ...]] = ("auto", "asyncio", "uvloop")


def run(main: Coroutine[Any, Any, T], loop: LoopName = "auto") -> T:
    with asyncio.Runner(loop_factory=_factory(loop)) as runner:
        return runner.run(main)


def check(loop: LoopName) -> None:
    """Refuses a loop that is not installed, before anything starts."""
    _factory(loop)


def _factory(loop: LoopName) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of the loop; None for asyncio's own."""
    if loop == "asyncio":
        return None
    try:
        import uvloop  # noqa: PLC0415 - it is an extra
    except ImportError as error:
        if loop == "uvloop":
            raise click.UsageError("uvloop is not installed: pip install 'ropeway[uvloop]'") from error
        return None
    return uvloop.new_event_loop
