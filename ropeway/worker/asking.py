"""Whether a handler can be called with the job that it will be given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..client.running import GIVEN, RunIn, RunningJob
from ..client.signature import evaluated, names_of
from ..errors import InvalidOption


def refuse_other_calls(name: str, function: Callable[..., Any]) -> None:
    """Each of its jobs would fail: better one error where the worker is made."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        problem = f"for {name!r} is a generator, and nobody would take its values: return a list"
        raise InvalidOption("handler", problem)
    try:
        # A decorator that gives more than the job has a signature of its own, behind that of what it wraps.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        # Some callables written in C cannot say what they take.
        return
    try:
        signature.bind(None)
    except TypeError:
        problem = (
            f"for {name!r} takes {signature}, and is given the job alone: for arguments of its own use @queue.task"
        )
        raise InvalidOption("handler", problem) from None


def refuse_other_jobs(name: str, function: Callable[..., Any], run_in: RunIn) -> None:
    """Of another kind, calls would be coroutines that nobody awaits, or awaited where there is no loop."""
    kind = _kind_asked_for(function)
    if kind is not None and getattr(kind, "run_in", run_in) != run_in:
        raise InvalidOption(
            "handler", f"for {name!r} asks for a {kind.__name__}; {GIVEN}, and one made by in_process(...) a ProcessJob"
        )


def _kind_asked_for(function: Callable[..., Any]) -> type[RunningJob] | None:
    """None if its first parameter says nothing of jobs, or nothing that can be read here."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()))
        kind = evaluated(first.annotation, names_of(function))
    except Exception:  # noqa: BLE001 - an annotation may be any expression
        return None
    return kind if isinstance(kind, type) and issubclass(kind, RunningJob) else None
