"""Resetting store handles in a forked child, without touching what it inherited.

Sockets, and the selector of an event loop, are shared with the parent. A child that wrote to such a socket would
corrupt the parent's messages, and one that closed a loop, or let it be garbage-collected, would remove the parent's
sockets from the shared selector. So the child keeps references to all inherited objects, and never uses them.
"""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class ForkAware(Protocol):
    """A holder of sockets or loops."""

    def reset_after_fork(self) -> object:
        """In a forked child: answers everything inherited, and references none of it any more. It must not block."""
        ...


_followed: Final[WeakSet[ForkAware]] = WeakSet()
_inherited: Final[list[object]] = []
_pid = os.getpid()
count = 0
"""Forks between the process that imported this and the current one: to compare it costs less than `os.getpid()`."""


def follow(holder: ForkAware) -> None:
    """Resets `holder` in every child that is forked while it lives."""
    _followed.add(holder)


def notice() -> None:
    """Detects a fork that Python did not notice. Call it before inherited objects could be used."""
    if os.getpid() != _pid:
        _reset_all()


def _reset_all() -> None:
    global _pid, count  # noqa: PLW0603 - there is one process
    _pid = os.getpid()
    count += 1
    _inherited.extend([holder.reset_after_fork() for holder in [*_followed]])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
