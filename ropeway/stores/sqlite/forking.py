"""What becomes of open files when their process forks.

SQLite guards a file with POSIX locks, which a child does not inherit, while the memory that says they are held is
copied. A child that went on with it would write without locks, and a parent that closed the file last would take the
-wal away under the child. So no connection may be open at that moment: before a fork each lane ends its round and
closes its connection, and after it the parent's lanes open theirs again when they have another call. The child begins
with nothing, as a process of its own. Calls that were under way belong to the parent.

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

REST_LIMIT: Final = 5.0
"""Seconds that a fork waits for the rounds that are under way, and these for a fork whose end they were not told of."""

_forks = threading.local()


class Pause(threading.Thread):
    """Holds all files between two moments.

    In a thread of its own, which no signal reaches: one that a handler raised in would leave the files held for ever.
    """

    def __init__(self) -> None:
        super().__init__(name="ropeway forks", daemon=True)
        # Not events, whose own locks a signal in the middle of a wait would leave to nobody.
        self.reached, self.over = threading.Lock(), threading.Lock()
        self.reached.acquire()
        self.over.acquire()

    def run(self) -> None:
        until = time.monotonic() + REST_LIMIT
        held = shared.hold_all(until)
        for file in held or ():
            file.rest(until)
        self.reached.release()
        if held is not None:
            # A signal may have kept from it that the fork is over. If it is not, the child finds the file in use.
            self.over.acquire(timeout=REST_LIMIT)
            shared.let_all_go(held)


def _before() -> None:
    if shared.has_files():
        _forks.pause = pause = Pause()
        # Without a thread to be had, the child finds the files in use.
        with suppress(RuntimeError):
            pause.start()
            pause.reached.acquire()


def _after_in_parent() -> None:
    pause: Pause | None = getattr(_forks, "pause", None)
    _forks.pause = None
    if pause is not None:
        pause.over.release()


def _after_in_child() -> None:
    _forks.pause = None
    shared.begin_anew()


def follow_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
