"""Rules that every store implements, in Python, SQL or Lua."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from .moves import MOVES
from .outcomes import SettlingMove
from .states import State

MetricName: TypeAlias = Literal["added", "completed", "failed", "retried", "stalled", "cancelled", "removed"]

METRICS_OF: Final[dict[str, tuple[MetricName, ...]]] = {
    "add": ("added",),
    "complete": ("completed",),
    "retry": ("retried",),
    "fail": ("failed",),
    "fail by child": ("failed",),
    "expire": ("failed",),
    "stall": ("stalled",),
    "give up": ("failed", "stalled"),
    "cancel": ("cancelled",),
    "remove": ("removed",),
}
"""The metrics that each move increments; other moves and notices increment none."""


def is_repeat(move: SettlingMove, state: State, *, same_token: bool) -> bool:
    """True if a settling move that is not allowed now has already been made, and its answer was lost."""
    return same_token and state in MOVES[move].targets
