"""Reading single key presses from a terminal, whose settings are restored afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

# Windows has no termios, and so no keys here.
if sys.platform != "win32":
    import termios
    import tty

_NAMES: Final = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[Z": "up",
    b"\t": "down",
    b"\x1b": "escape",
}


def names_of(typed: bytes) -> list[str]:
    """The keys in one read: `up`, `down`, `escape` or a letter. Other sequences are ignored."""
    keys: list[str] = []
    while typed:
        sequence = next((each for each in _NAMES if typed.startswith(each)), typed[:1])
        if sequence == b"\x1b" and len(typed) > 1:
            return keys
        keys.append(_NAMES.get(sequence) or sequence.decode("ascii", "replace").lower())
        typed = typed[len(sequence) :]
    return keys


class Keyboard:
    """Key presses; none if the input is not a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._manners: list[Any] | None = None
        self.is_there = sys.platform != "win32" and os.isatty(fd)

    @contextlib.contextmanager
    def unbuffered(self) -> Iterator[None]:
        """Sets the terminal to unbuffered input without echo; Ctrl-C and Ctrl-Z stay signals."""
        if not self.is_there:
            yield
            return
        if self._manners is None:
            # Only once: after a suspension a shell may return the terminal with these settings.
            self._manners = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSADRAIN)
        try:
            yield
        finally:
            self._restore()

    def _restore(self) -> None:
        assert self._manners is not None, "it was unbuffered before"
        # Not for a closed terminal, nor for one that a shell has taken over already.
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(self._fd) == os.getpgrp():
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._manners)

    @contextlib.contextmanager
    def heard_by(self, press: Callable[[str], None]) -> Iterator[None]:
        if not self.is_there:
            yield
            return
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                typed = os.read(self._fd, 1024)
            except OSError:
                typed = b""
            if not typed:
                loop.remove_reader(self._fd)
            for key in names_of(typed):
                press(key)

        loop.add_reader(self._fd, read)
        try:
            yield
        finally:
            loop.remove_reader(self._fd)
