"""Rules about jobs that every store keeps, whatever it is written in."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from .instants import Instant, moment_of
from .moves import MOVES
from .outcomes import SettlingMove
from .states import State

STALLED_TOO_OFTEN: Final = "stalled more than allowable limit"

OnStalled: TypeAlias = Literal["requeue", "fail"]
"""What becomes of a job whose lock ran out."""

MetricName: TypeAlias = Literal["added", "completed", "failed", "retried", "stalled", "cancelled", "removed"]

METRICS_OF: Final[dict[str, tuple[MetricName, ...]]] = {
    "add": ("added",),
    "complete": ("completed",),
    "retry": ("retried",),
    "fail": ("failed",),
    "fail by child": ("failed",),
    "stall": ("stalled",),
    "give up": ("failed", "stalled"),
    "cancel": ("cancelled",),
    "remove": ("removed",),
}
"""What each move adds to, in the minute in which it happens; other moves and notices add to nothing."""


def is_repeat(move: SettlingMove, state: State, *, same_token: bool) -> bool:
    """Whether a settling move that is not allowed now has already happened: its answer was lost."""
    return same_token and state in MOVES[move].targets


def is_given_up(
    *,
    stalled_count: int,
    attempts_made: int,
    attempts: int,
    max_stalled_count: int,
    on_stalled: OnStalled,
    counts_as_attempt: bool,
) -> bool:
    """Whether a job whose lock ran out fails for good. The counts include this stall."""
    return (
        on_stalled == "fail" or stalled_count > max_stalled_count or (counts_as_attempt and attempts_made >= attempts)
    )


def stall_reason(worker: str | None, renewed_at: Instant | None, *, given_up: bool) -> str:
    what = STALLED_TOO_OFTEN if given_up else "stalled"
    renewed = moment_of(renewed_at)
    when = renewed.isoformat(timespec="milliseconds").replace("+00:00", "Z") if renewed else "an unknown time"
    return f"{what}: worker {worker or 'unknown'} last renewed its lock at {when}"
