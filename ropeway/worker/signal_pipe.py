"""The pipe into which the interpreter writes the numbers of signals, for whichever thread can read it.

Python runs signal handlers on the main thread, between two bytecode instructions: not at all while that thread is in
one long call, such as `os.system`. It writes to the pipe at once, from the C-level handler:

    C-level handler -> SignalPipe -> the event loop; or the maintenance thread, while the loop is blocked
                                         -> the loop's own pipe, for the signal handlers that the loop knows
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_MOST: Final = 4096
"""Bytes to read at once, one for each signal."""


class SignalPipe:
    """Reads signals ahead of the loop's own pipe, to which it passes them on.

    If other code adds a signal handler to the loop later, the loop takes its pipe back, and this one stays empty.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, heard: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._heard = heard
        self._output, self._input = socket.socketpair()
        self._output.setblocking(False)
        self._input.setblocking(False)
        self._of_loop = signal.set_wakeup_fd(self._input.fileno(), warn_on_full_buffer=False)
        loop.add_reader(self._output, self.read)

    def read(self) -> None:
        """Takes the signals that arrived since the last call, each of them once. From any thread."""
        try:
            numbers = self._output.recv(_MOST)
        except OSError:  # It is empty.
            return
        self._heard(numbers)
        with suppress(OSError):  # A full pipe wakes the loop too.
            os.write(self._of_loop, numbers)

    def close(self) -> None:
        current = signal.set_wakeup_fd(self._of_loop)
        if current != self._input.fileno():
            signal.set_wakeup_fd(current)
        self.read()
        self._loop.remove_reader(self._output)
        self._close_ends()

    def forget(self) -> None:
        """Closes it in a forked child, whose loop is still the parent's."""
        signal.set_wakeup_fd(-1)
        self._close_ends()

    def _close_ends(self) -> None:
        self._output.close()
        self._input.close()
