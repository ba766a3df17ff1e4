"""What a forked child inherits of the handles of its parent, and never touches.

Sockets, and the selector behind an event loop, are the parent's as well. A child that wrote to such a socket would
speak in the middle of the parent's words, and one that closed a loop, or let it be collected, would take the parent's
sockets out of the selector that both have. So it lets all of it lie while it lives, and its handles begin anew.
"""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class BeginsAnew(Protocol):
    def begin_anew(self) -> object:
        """In a forked child: answers all that was inherited, and holds none of it any more. It must not wait."""
        ...


_followed: Final[WeakSet[BeginsAnew]] = WeakSet()
_inherited: Final[list[object]] = []
_pid = os.getpid()


def follow(holder: BeginsAnew) -> None:
    """Lets it begin anew in every child that is forked while it lives."""
    _followed.add(holder)


def notice() -> None:
    """Call it before what was inherited could be used: Python is not told of every fork."""
    if os.getpid() != _pid:
        _begin_anew()


def _begin_anew() -> None:
    global _pid  # noqa: PLW0603 - there is one process
    _pid = os.getpid()
    _inherited.extend([holder.begin_anew() for holder in [*_followed]])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
