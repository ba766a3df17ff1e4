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
from typing import Final

from . import shared

REST_LIMIT: Final = 5.0
"""Seconds that a fork waits for the rounds that are under way."""

_forks = threading.local()


def _before() -> None:
    until = time.monotonic() + REST_LIMIT
    _forks.held = shared.hold_all(until)
    for file in _forks.held or ():
        file.rest(until)


def _after_in_parent() -> None:
    held, _forks.held = getattr(_forks, "held", None), None
    if held is not None:
        shared.let_all_go(held)


def _after_in_child() -> None:
    _forks.held = None
    shared.begin_anew()


def follow_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
