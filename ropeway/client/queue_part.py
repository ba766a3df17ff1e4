"""The mark of base classes that `Queue` consists of."""

from __future__ import annotations

from types import FunctionType
from typing import TypeVar

T = TypeVar("T")


def queue_part(cls: type[T]) -> type[T]:
    """Names its methods as those of `Queue`, for the texts that show the name of a function.

    "coroutine 'Queue.cancel' was never awaited" is what users can look for: they do not know the base classes.
    """
    for name, member in vars(cls).items():
        if isinstance(member, FunctionType):
            member.__qualname__ = f"Queue.{name}"
    return cls
