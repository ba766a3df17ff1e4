"""SIGTERM and SIGINT, for all workers that a process runs."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

_NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)
_stops: Final[list[Callable[[], None]]] = []
_before: Final[dict[signal.Signals, Any]] = {}

Loop: TypeAlias = asyncio.AbstractEventLoop


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Inside the block both signals mean `stop`; outside the main thread, where none arrive, it changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    if not _stops:
        _listen(loop)
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)
        if not _stops:
            _leave_alone(loop)


def _stop_all() -> None:
    for stop in _stops:
        stop()


def _listen(loop: Loop) -> None:
    for number in _NUMBERS:
        _before[number] = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, _stop_all)
        except NotImplementedError:  # Loops of Windows do not know signals.
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(_stop_all))


def _leave_alone(loop: Loop) -> None:
    for number in _NUMBERS:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        signal.signal(number, _before.pop(number) or signal.SIG_DFL)
