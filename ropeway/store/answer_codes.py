"""Codes in which Lua scripts and SQL functions answer: one letter per added job, else two, for verdict and state."""

from __future__ import annotations

from typing import Final, Literal

from ..job.states import State
from .values import HELD, AddVerdict, Answer

ADDED: Final[dict[str, AddVerdict]] = {
    "c": "created",
    "f": "found",
    "x": "conflict",
    "s": "skipped",
    "d": "deduplicated",
}
_VERDICTS: Final[dict[str, Literal["done", "lost", "missing", "refused"]]] = {
    "d": "done",
    "l": "lost",
    "m": "missing",
    "r": "refused",
}
_STATES: Final[dict[str, State | None]] = {
    "w": "waiting",
    "k": "waiting-children",
    "d": "delayed",
    "a": "active",
    "c": "completed",
    "f": "failed",
    "x": "cancelled",
    "-": None,
}
ANSWERS: Final[dict[str, Answer]] = {
    f"{letter}{state}": Answer(verdict, name)
    for letter, verdict in _VERDICTS.items()
    for state, name in _STATES.items()
}


_HELD: Final = next(code for code, answer in ANSWERS.items() if answer == HELD)


def answers_of(letters: str) -> list[Answer]:
    number = len(letters) // 2
    if letters == _HELD * number:
        # So it mostly is.
        return [HELD] * number
    return [ANSWERS[letters[at : at + 2]] for at in range(0, len(letters), 2)]
