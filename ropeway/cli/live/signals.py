"""The signals that end a view, and the exit codes that shells know them by."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any, Final

ENDS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
RESIZE: Final[int | None] = getattr(signal, "SIGWINCH", None)
SUSPEND: Final[int | None] = getattr(signal, "SIGTSTP", None)


@contextlib.contextmanager
def on_signals(*handlers: tuple[int | None, Callable[[], None]]) -> Iterator[None]:
    """Calls functions on signals, on the loop. Not supported by loops of Windows, where Ctrl-C is unchanged."""
    loop = asyncio.get_running_loop()
    heard: list[int] = []
    try:
        for number, handler in handlers:
            if number is not None:
                with contextlib.suppress(NotImplementedError, RuntimeError):
                    loop.add_signal_handler(number, handler)
                    heard.append(number)
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def ending() -> Iterator[asyncio.Future[int]]:
    """A future that is done when the view must end; its result is the exit code."""
    end: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end_with(code: int) -> Callable[[], None]:
        return lambda: None if end.done() else end.set_result(code)

    with on_signals(*((number, end_with(128 + number)) for number in ENDS)):
        yield end


async def until(end: asyncio.Future[int], task: asyncio.Task[None]) -> int:
    """Runs the task until a signal or its error; returns the exit code."""
    try:
        waited: list[asyncio.Future[Any]] = [end, task]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        return end.result() if end.done() else 0
    finally:
        task.cancel()
        await asyncio.wait([task])
