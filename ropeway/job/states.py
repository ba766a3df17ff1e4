"""The states of a job, and the words that people from elsewhere use for them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from ..errors import InvalidOption

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


def state_named(word: str) -> State:
    """The state for a word, aliases included."""
    if word in STATES:
        return word
    try:
        return ALIASES[word]
    except (KeyError, TypeError):
        raise InvalidOption("state", f"cannot be {word!r}; the states are {', '.join(STATES)}") from None
