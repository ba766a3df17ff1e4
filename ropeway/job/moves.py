"""The state machine of a job, stated once: the legal moves between states.

Event names, the documentation's diagram, the conformance suite and its auditor derive from `MOVES`.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from .states import FINAL, State

MoveName: TypeAlias = Literal[
    "add",
    "promote",
    "release",
    "claim",
    "complete",
    "retry",
    "fail",
    "postpone",
    "hand back",
    "stall",
    "give up",
    "fail by child",
    "expire",
    "cancel",
    "retry by hand",
    "remove",
]


class Move(NamedTuple):
    name: MoveName
    sources: tuple[State, ...]
    """The states it starts from; empty if the job does not exist yet."""
    targets: tuple[State, ...]
    """The states it may lead to; empty if the job is removed."""
    rule: str
    fenced: bool = False
    """True if only the holder of the job's current token may make it."""
    announces: tuple[str, ...] = ()
    """The events it emits in addition to the one named after the new state."""

    def events(self, to: State | None) -> tuple[str, ...]:
        return self.announces if to is None else (*self.announces, to)


MOVES: Final[dict[str, Move]] = {
    move.name: move
    for move in (
        Move(
            "add",
            (),
            ("waiting", "delayed", "waiting-children"),
            "atomic with its queue membership",
            announces=("added",),
        ),
        Move("promote", ("delayed",), ("waiting",), "when due, or by hand"),
        Move("release", ("waiting-children",), ("waiting", "delayed"), "when the last child is settled"),
        Move("claim", ("waiting",), ("active",), "new token; attempts_started + 1"),
        Move("complete", ("active",), ("completed",), "stores the result and finished_at", fenced=True),
        Move(
            "retry",
            ("active",),
            ("delayed", "waiting"),
            "attempts_made + 1; attempts remain and the error may be retried; without a delay it goes behind those "
            "that wait at its priority",
            fenced=True,
            announces=("retrying",),
        ),
        Move(
            "fail",
            ("active",),
            ("failed",),
            "attempts_made + 1; no attempts remain, or the error is fatal",
            fenced=True,
        ),
        Move(
            "postpone",
            ("active",),
            ("delayed", "waiting", "waiting-children"),
            "asked by the handler; uses no attempt; without a delay it goes behind those that wait at its priority",
            fenced=True,
        ),
        Move(
            "hand back",
            ("active",),
            ("waiting",),
            "a worker that shuts down, or cannot run it now; uses no attempt; keeps its place",
            fenced=True,
        ),
        Move(
            "stall",
            ("active",),
            ("waiting",),
            "lock expired; stalled_count + 1; keeps its place ahead of newer jobs of its priority",
            announces=("stalled",),
        ),
        Move(
            "give up",
            ("active",),
            ("failed",),
            "lock expired more than max_stalled_count times, at last in an attempt that ran alone",
            announces=("stalled",),
        ),
        Move("fail by child", ("waiting-children",), ("failed",), "by the child-failure policy"),
        Move(
            "expire",
            ("waiting", "waiting-children", "delayed"),
            ("failed",),
            "not started by the end of its `expires`",
            announces=("expired",),
        ),
        Move(
            "cancel",
            ("waiting", "waiting-children", "delayed", "active"),
            ("cancelled",),
            "at once, from anywhere; revokes the token, so a late result is refused",
        ),
        Move(
            "retry by hand",
            FINAL,
            ("waiting", "waiting-children"),
            "grants one more run; may reset the counters; a parent that failed by its children is retried with them",
        ),
        Move(
            "remove",
            ("waiting", "waiting-children", "delayed", "active", *FINAL),
            (),
            "active only by force",
            announces=("removed",),
        ),
    )
}


def is_legal(move: str, source: State | None, target: State | None) -> bool:
    """True if the table has this step; None stands for a job that does not exist."""
    known = MOVES.get(move)
    if known is None:
        return False
    starts = source in known.sources if known.sources else source is None
    ends = target in known.targets if known.targets else target is None
    return bool(starts and ends)
