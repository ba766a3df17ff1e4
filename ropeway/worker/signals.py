"""SIGTERM and SIGINT, for all workers of a process.

A signal reaches a worker in two ways. The event loop calls `stop` on its next iteration. Python calls `heard` on the
main thread between two bytecode instructions, even if the loop is blocked: it only records the time, for other threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeAlias

from .exit_codes import BLOCKED_LOOP

_NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)
_before: Final[dict[signal.Signals, Any]] = {}
FLUSH_LIMIT: Final = 0.5
"""Seconds for flushing logs and streams. The code that blocks the loop may hold their locks."""

Loop: TypeAlias = asyncio.AbstractEventLoop


def _nothing() -> None:
    pass


class Stoppable:
    """One worker that signals stop."""

    def __init__(self, stop: Callable[[], None], heard: Callable[[], None]) -> None:
        self.stop = stop
        self.heard = heard
        self.is_done = False
        """True if it holds no jobs any more, and its process may end."""

    def give_up(self) -> None:
        """Ends the process, whose loop is blocked, once all of its workers are done."""
        self.is_done = True
        if all(other.is_done for other in _stoppable):
            _end_process()


_stoppable: Final[list[Stoppable]] = []


@contextmanager
def stopped_by_signals(stop: Callable[[], None], heard: Callable[[], None] = _nothing) -> Iterator[Stoppable | None]:
    """Calls `stop` on both signals inside the block. No effect outside the main thread, where no signals arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    loop = asyncio.get_running_loop()
    if not _stoppable:
        _listen(loop)
    stoppable = Stoppable(stop, heard)
    _stoppable.append(stoppable)
    try:
        yield stoppable
    finally:
        _stoppable.remove(stoppable)
        if not _stoppable:
            _leave_alone(loop)


def _stop_all() -> None:
    for stoppable in _stoppable:
        stoppable.stop()


def _hear(*_: object) -> None:
    for stoppable in _stoppable:
        stoppable.heard()


def _hear_and_stop(loop: Loop, *_: object) -> None:
    _hear()
    loop.call_soon_threadsafe(_stop_all)


def _listen(loop: Loop) -> None:
    for number in _NUMBERS:
        _before[number] = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, _stop_all)
        except NotImplementedError:  # Loops of Windows do not know signals.
            signal.signal(number, partial(_hear_and_stop, loop))
        else:
            # Replaces the no-op handler that the loop installed; the loop's wake-up descriptor stays.
            signal.signal(number, _hear)


def _leave_alone(loop: Loop) -> None:
    for number in _NUMBERS:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        signal.signal(number, _before.pop(number) or signal.SIG_DFL)


def _end_process() -> None:
    flushing = threading.Thread(target=_flush, name="ropeway-flush", daemon=True)
    with suppress(RuntimeError):
        flushing.start()
        flushing.join(FLUSH_LIMIT)
    os._exit(BLOCKED_LOOP)


def _flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
