"""Checks that a handler can be called with the job it will be given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..client.running import GIVEN, RunIn, RunningJob
from ..client.signature import evaluated, names_of
from ..errors import InvalidOption


def refuse_other_calls(name: str, function: Callable[..., Any], arguments: int = 1) -> None:
    """Refuses functions that cannot take a job, or a job and a context: one error where the worker is made."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        problem = f"for {name!r} is a generator, whose values nothing would consume: return a list"
        raise InvalidOption("handler", problem)
    try:
        # A decorator may pass more than the job to the function it wraps: only its own signature counts.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        # Some callables written in C have no signature.
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        problem = f"for {name!r} takes {signature}, but is called with "
        if arguments == 1:
            problem += "the job alone: for typed arguments use @queue.task"
        else:
            problem += "the job and the context of its phase"
        raise InvalidOption("handler", problem) from None


def refuse_other_jobs(name: str, function: Callable[..., Any], run_in: RunIn) -> None:
    """Refuses a handler annotated for another class of job than it will be given.

    Its calls would be coroutines that are never awaited, or would be awaited where there is no loop.
    """
    kind = _annotated_class(function)
    if kind is not None and getattr(kind, "run_in", run_in) != run_in:
        raise InvalidOption(
            "handler", f"for {name!r} asks for a {kind.__name__}; {GIVEN}, and one made by in_process(...) a ProcessJob"
        )


def _annotated_class(function: Callable[..., Any]) -> type[RunningJob] | None:
    """The job class that annotates its first parameter; None if there is none or it cannot be evaluated."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()))
        kind = evaluated(first.annotation, names_of(function))
    except Exception:  # noqa: BLE001 - an annotation may be any expression
        return None
    return kind if isinstance(kind, type) and issubclass(kind, RunningJob) else None
