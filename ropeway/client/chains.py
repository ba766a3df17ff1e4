"""`chain`: steps that run one after the other."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from ..errors import InvalidInput
from .new_jobs import Call, checked_call

R = TypeVar("R")


@overload
def chain(only: Call[R], /) -> Call[R]: ...
@overload
def chain(a: Call[Any], last: Call[R], /) -> Call[R]: ...
@overload
def chain(a: Call[Any], b: Call[Any], last: Call[R], /) -> Call[R]: ...
@overload
def chain(a: Call[Any], b: Call[Any], c: Call[Any], last: Call[R], /) -> Call[R]: ...
@overload
def chain(a: Call[Any], b: Call[Any], c: Call[Any], d: Call[Any], last: Call[R], /) -> Call[R]: ...
@overload
def chain(*steps: Call[Any]) -> Call[Any]: ...
def chain(*steps: Call[Any]) -> Call[Any]:
    """Makes each step run after the one before, and returns the last, which waits for the others.

    `await chain(download.call(url), resize.call()).add()`. A step receives a result by `result_of`.
    """
    if not steps:
        raise InvalidInput("chain takes at least one task.call(...)")
    chained = checked_call(steps[0])
    for step in steps[1:]:
        chained = checked_call(step).after(chained)
    return chained
