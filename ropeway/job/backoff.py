"""Backoff: the delay before the next attempt."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import msgspec

from ..errors import InvalidName, InvalidOption
from ..showing import shown
from .durations import LONGEST, Duration, milliseconds
from .instants import Milliseconds
from .names import job_name
from .numbers import fraction, whole

LONGEST_DELAY: Final[Milliseconds] = 24 * 3_600_000

Kind: TypeAlias = Literal["fixed", "linear", "exponential", "custom"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)

CustomBackoff: TypeAlias = Callable[[int, BaseException, Any], float | Awaitable[float]]
"""Takes the number of the failed attempt, its error and the job; returns seconds.

0 retries at once; a negative answer stops retrying.
"""


class Backoff(msgspec.Struct, frozen=True, omit_defaults=True):
    """A backoff rule, made by `fixed`, `linear`, `exponential` or `custom`."""

    kind: Kind
    delay: Milliseconds = 0
    max_delay: Milliseconds = LONGEST_DELAY
    jitter: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        kind: object = self.kind
        if not isinstance(kind, str) or kind not in KINDS:
            raise InvalidOption("backoff", f"cannot be of the kind {shown(kind)}; there are {', '.join(KINDS)}")
        whole("delay", self.delay, 0, LONGEST)
        whole("max_delay", self.max_delay, 0, LONGEST)
        fraction("jitter", self.jitter)
        if self.name or self.kind == "custom":
            _function_name(self.name)

    @classmethod
    def fixed(cls, delay: Duration, *, jitter: float = 0.0) -> Backoff:
        return _checked("fixed", delay, delay, jitter)

    @classmethod
    def linear(cls, delay: Duration, *, max_delay: Duration = LONGEST_DELAY / 1000, jitter: float = 0.0) -> Backoff:
        """`delay`, twice `delay`, three times `delay`, and so on up to `max_delay`."""
        return _checked("linear", delay, max_delay, jitter)

    @classmethod
    def exponential(
        cls, delay: Duration, *, max_delay: Duration = LONGEST_DELAY / 1000, jitter: float = 0.0
    ) -> Backoff:
        """`delay`, then doubled with each attempt up to `max_delay`."""
        return _checked("exponential", delay, max_delay, jitter)

    @classmethod
    def custom(cls, name: str) -> Backoff:
        """The function that workers were given under this name: `Worker(..., backoffs={name: function})`."""
        return cls("custom", name=_function_name(name))

    def after(self, attempt: int, luck: float) -> Milliseconds:
        """The delay after the given attempt (the first is 1).

        `luck` in 0..1 comes from outside: with jitter j the answer lies between (1 - j) and 1 times the full delay.
        """
        match self.kind:
            case "linear":
                full: float = self.delay * attempt
            case "exponential":
                # Beyond 2**62 `max_delay` applies anyway, and floats would overflow.
                full = self.delay * 2.0 ** min(attempt - 1, 62)
            case _:
                full = self.delay
        full = min(full, self.max_delay)
        return round(full * (1 - self.jitter * luck))


def _checked(kind: Kind, delay: Duration, max_delay: Duration, jitter: float) -> Backoff:
    lengths = milliseconds(delay, "delay"), milliseconds(max_delay, "max_delay")
    return Backoff(kind, *lengths, fraction("jitter", jitter))


def _function_name(given: object) -> str:
    try:
        return job_name(given)
    except InvalidName as wrong:
        problem = f"needs the name of a function given to workers as backoffs={{name: ...}}, not {shown(given)}"
        raise InvalidOption("backoff", f"{problem}: {wrong.remedy}") from None


def custom_delay(answer: object) -> Milliseconds | None:
    """Converts the result of a custom function: milliseconds, or None to stop retrying."""
    if isinstance(answer, timedelta):
        answer = answer.total_seconds()
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        if isinstance(answer, float) and math.isnan(answer):
            raise InvalidOption("backoff", "function answered NaN; answer seconds")
        return None if answer < 0 else milliseconds(min(answer, LONGEST_DELAY / 1000))
    return milliseconds(cast(Duration, answer))
