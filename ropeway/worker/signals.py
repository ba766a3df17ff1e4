"""SIGTERM and SIGINT, for all workers of a process.

The event loop calls `stop` on its next iteration. `heard` comes earlier, even if the loop is blocked, and only records
the time, for other threads: on the main thread as soon as it runs Python code, or from whichever thread reads the pipe
(`signal_pipe.py`). Code that never lets go of the interpreter's lock keeps every thread from hearing anything.
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
from .signal_pipe import SignalPipe
from .stop_requests import Way

_NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)
_before: Final[dict[signal.Signals, Any]] = {}
FLUSH_LIMIT: Final = 0.5
"""Seconds for flushing logs and streams. The code that blocks the loop may hold their locks."""

Loop: TypeAlias = asyncio.AbstractEventLoop
Heard: TypeAlias = Callable[[Way], None]


def _nothing(_: Way) -> None:
    pass


class Stoppable:
    """One worker that signals stop."""

    def __init__(self, stop: Callable[[], None], heard: Heard) -> None:
        self.stop = stop
        self.heard = heard
        self.is_done = False
        """True if it holds no jobs any more, and its process may end."""

    def read_signals(self) -> None:
        """Calls `heard` for signals that Python could not handle yet. From any thread."""
        if _pipe is not None:
            _pipe.read()

    def give_up(self) -> None:
        """Ends the process, whose loop is blocked, once all of its workers are done."""
        self.is_done = True
        if all(other.is_done for other in _stoppable):
            _end_process()


_stoppable: Final[list[Stoppable]] = []
_pipe: SignalPipe | None = None


@contextmanager
def stopped_by_signals(stop: Callable[[], None], heard: Heard = _nothing) -> Iterator[Stoppable | None]:
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
        stoppable.heard("handler")


def _hear_from_pipe(numbers: bytes) -> None:
    for _ in filter(_NUMBERS.__contains__, numbers):
        # A copy: the main thread may change it meanwhile.
        for stoppable in [*_stoppable]:
            stoppable.heard("pipe")


def _hear_and_stop(loop: Loop, *_: object) -> None:
    _hear()
    loop.call_soon_threadsafe(_stop_all)


def _listen(loop: Loop) -> None:
    global _pipe  # noqa: PLW0603 - signals belong to the process
    for number in _NUMBERS:
        _before[number] = signal.getsignal(number)
    try:
        for number in _NUMBERS:
            loop.add_signal_handler(number, _stop_all)
            # Replaces the no-op handler that the loop installed; the loop's wake-up descriptor stays.
            signal.signal(number, _hear)
    except NotImplementedError:  # Loops of Windows do not know signals.
        for number in _NUMBERS:
            signal.signal(number, partial(_hear_and_stop, loop))
    else:
        # Without a pipe, because too many files are open, signals are heard between two instructions only.
        with suppress(OSError):
            # After the last handler: with each one the loop sets its own pipe.
            _pipe = SignalPipe(loop, _hear_from_pipe)


def _leave_alone(loop: Loop) -> None:
    global _pipe  # noqa: PLW0603 - signals belong to the process
    if _pipe is not None:
        _pipe.close()
        _pipe = None
    for number in _NUMBERS:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(number)
        signal.signal(number, _before.pop(number) or signal.SIG_DFL)


def _forget_in_child() -> None:
    """A forked child is no worker: its signals must neither reach its parent, through the pipe, nor be ignored."""
    global _pipe  # noqa: PLW0603 - signals belong to the process
    if _stoppable:
        _stoppable.clear()
        if _pipe is not None:
            _pipe.forget()
            _pipe = None
        for number in _NUMBERS:
            signal.signal(number, _before.pop(number) or signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


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
