"""The states of a job, and their aliases in other job queues."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from ..errors import InvalidOption
from ..showing import shown

State: TypeAlias = Literal["waiting", "waiting-children", "delayed", "active", "completed", "failed", "cancelled"]

STATES: Final[tuple[State, ...]] = get_args(State)
FINAL: Final[tuple[State, ...]] = ("completed", "failed", "cancelled")
OPEN: Final[tuple[State, ...]] = tuple(state for state in STATES if state not in FINAL)

ALIASES: Final[dict[str, State]] = {
    "wait": "waiting",
    "pending": "waiting",
    "unclaimed": "waiting",
    "in_progress": "active",
}


def state_named(word: object) -> State:
    """The state for a word, aliases included."""
    state = _BY_WORD.get(word) if isinstance(word, str) else None
    if state is None:
        raise InvalidOption("state", f"cannot be {shown(word)}; the states are {', '.join(STATES)}")
    return state


_BY_WORD: Final[dict[str, State]] = {**{state: state for state in STATES}, **ALIASES}
