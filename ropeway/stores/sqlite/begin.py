"""Begins write transactions, waiting for other writers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

import apsw

_FIRST_PAUSE: Final = 0.000_1
_LONGEST_PAUSE: Final = 0.002


def begin(connection: apsw.Connection, patience: float, is_given_up: Callable[[], bool] = lambda: False) -> None:
    """Begins a write transaction; raises `BusyError` after `patience` seconds, or once the caller has given up."""
    deadline = time.monotonic() + patience
    pause = _FIRST_PAUSE
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            if is_given_up() or time.monotonic() >= deadline:
                raise
        else:
            return
        # Asked often, because there is little time between two transactions of a busy writer; and at random,
        # because writers that wait equally long would meet again.
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        pause = min(pause * 1.3, _LONGEST_PAUSE)
