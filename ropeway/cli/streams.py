"""Replacing standard streams that the caller closed."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Opens the null device for streams that were closed (`>&-`), for which Python has None.

    In the order of their file descriptors, so that each gets its own, and no file of a store gets one of them.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open until the end
