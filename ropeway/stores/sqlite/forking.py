"""Closes connections for the moment of a fork.

SQLite guards a file with POSIX locks, which a child does not inherit, while the memory that says they are held is
copied. A child that went on with it would write without locks, and a parent that closed the file last would take the
-wal away under the child. So no connection may be open at that moment: before a fork each thread ends its round and
closes its connection, and after it the parent's threads open theirs again with their next call. The child begins with
nothing open. Calls that were under way belong to the parent.

A fork waits a bounded time for this. A file that was still in use then, or a fork that Python was not told of, is
refused in the child.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Final

from . import shared

PAUSE_LIMIT: Final = 5.0
"""Seconds that a fork waits for open transactions, and threads wait for the end of a fork."""

_forks = threading.local()


class ForkThread(threading.Thread):
    """Thread that pauses all files around a fork.

    A separate thread, because no signal reaches it: a handler that raised here would leave the files paused for ever.
    """

    def __init__(self) -> None:
        super().__init__(name="ropeway forks", daemon=True)
        # Not events, whose own locks a signal in the middle of a wait would leave to nobody.
        self.reached, self.over = threading.Lock(), threading.Lock()
        self.reached.acquire()
        self.over.acquire()

    def run(self) -> None:
        until = time.monotonic() + PAUSE_LIMIT
        held = shared.hold_all(until)
        for file in held or ():
            file.pause(until)
        self.reached.release()
        if held is not None:
            # A signal may have kept from it that the fork is over. If it is not, the child finds the file in use.
            self.over.acquire(timeout=PAUSE_LIMIT)
            shared.let_all_go(held)


def _before() -> None:
    if shared.has_files():
        _forks.pause = pause = ForkThread()
        # Without a thread to be had, the child finds the files in use.
        with suppress(RuntimeError):
            pause.start()
            pause.reached.acquire()


def _after_in_parent() -> None:
    pause: ForkThread | None = getattr(_forks, "pause", None)
    _forks.pause = None
    if pause is not None:
        pause.over.release()


def _after_in_child() -> None:
    _forks.pause = None
    shared.reset_after_fork()


def follow_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
