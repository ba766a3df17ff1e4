"""Whether a handler asks for the kind of job that it will be given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..client.running import GIVEN, RunIn, RunningJob
from ..client.signature import evaluated, names_of
from ..errors import InvalidOption


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
