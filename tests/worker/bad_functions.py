"""What functions of applications may do to a worker: errors of all kinds, and forks that come back."""

from __future__ import annotations

import asyncio
import os
import warnings
from typing import Final

import pytest

from tests.patience import PATIENCE

EXITS: Final[list[type[BaseException]]] = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    BaseException,
    MemoryError,
]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def _circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


ODD_ERRORS: Final = pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unprintable(), "Unprintable"),
        (ValueError("x" * 10_000_000), "xxx"),
        (ValueError("\ud800\x00"), "ValueError: \\ud800\\x00"),
        (_circle(), "ValueError: first"),
        (ValueError(), "ValueError"),
        (ExceptionGroup("several", [ValueError("a"), KeyError("b")]), "several"),
    ],
    ids=["unprintable", "huge", "surrogate", "circle", "empty", "group"],
)
"""Errors, and a part of the reason that is stored for each."""


def fork() -> int:
    """The child's process id; 0 in the child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


async def exit_code_of(child: int) -> int:
    _, status = await asyncio.wait_for(asyncio.to_thread(os.waitpid, child, 0), PATIENCE)
    return os.waitstatus_to_exitcode(status)
