"""Shared constants for all possible answers, which are immutable."""

from __future__ import annotations

from typing import Final

from ....job.states import STATES, State
from ....store.values import MISSING, Answer

__all__ = ["DONE", "LOST", "MISSING", "REFUSED"]

DONE: Final[dict[State, Answer]] = {state: Answer("done", state) for state in STATES}
LOST: Final[dict[State, Answer]] = {state: Answer("lost", state) for state in STATES}
REFUSED: Final[dict[State, Answer]] = {state: Answer("refused", state) for state in STATES}
