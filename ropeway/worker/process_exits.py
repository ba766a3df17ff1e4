"""Exits of other worker processes under the same supervisor, as announced by it.

They appear in the failure reason of jobs that such a process left behind: see `StallRules.ends`.
"""

from __future__ import annotations

import signal
import socket
from typing import Final

EXITS_KEPT: Final = 20

PROCESS_EXITS: Final[dict[str, str]] = {}
"""By `host:pid`, as in worker ids. Written by one thread; other threads only copy it."""


def note_exit(pid: int, how: str) -> None:
    PROCESS_EXITS[f"{socket.gethostname()}:{pid}"] = how
    while len(PROCESS_EXITS) > EXITS_KEPT:
        del PROCESS_EXITS[next(iter(PROCESS_EXITS))]


def exit_text(returncode: int) -> str:
    """A `subprocess` return code in words."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name} (signal {-returncode})"
    except ValueError:
        return f"was killed by signal {-returncode}"
