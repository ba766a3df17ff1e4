"""How other processes of workers on this machine ended, as far as their supervisor has told this one.

The reason of a job that such a process left behind says it: see `StallRules.ends`.
"""

from __future__ import annotations

import signal
import socket
from typing import Final

ENDS_KEPT: Final = 20

ENDS: Final[dict[str, str]] = {}
"""By process, as it stands in the ids of its workers. Written by one thread, and only ever copied by others."""


def note_end(pid: int, how: str) -> None:
    ENDS[f"{socket.gethostname()}:{pid}"] = how
    while len(ENDS) > ENDS_KEPT:
        del ENDS[next(iter(ENDS))]


def end_of(returncode: int) -> str:
    """What `subprocess` says of an end, in words."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name} (signal {-returncode})"
    except ValueError:
        return f"was killed by signal {-returncode}"
