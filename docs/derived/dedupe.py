"""What an add does if its key is held, from `ropeway.job.dedupe`."""

from __future__ import annotations

from typing import Final

from ropeway.job.dedupe import ACTIONS, DedupeAction
from ropeway.job.states import FINAL, OPEN, State

from . import tables

_ACTIONS: Final[dict[DedupeAction, str]] = {
    "find": "finds it",
    "refresh": "finds it, and gives it the new data",
    "postpone": "finds it, gives it the new data, and its delay begins again",
    "follow": "waits for its end; a further add gives its data to the one that waits",
    "replace": "cancels it, and takes the key",
    "take": "takes the key: a new job",
}
_FINAL: Final = "final, its key held by `throttle`"


def actions() -> str:
    rows = [[_holder(alike), *_cells(alike[0])] for alike in _grouped([*OPEN, *FINAL])]
    return tables.table(["the holder is", *map(tables.code, ACTIONS)], rows)


def _grouped(states: list[State]) -> list[list[State]]:
    """States in which every mode does the same."""
    groups: dict[tuple[str, ...], list[State]] = {}
    for state in states:
        groups.setdefault(tuple(_cells(state)), []).append(state)
    return list(groups.values())


def _cells(state: State) -> list[str]:
    return [_ACTIONS[row[state]] for row in ACTIONS.values()]


def _holder(states: list[State]) -> str:
    """Other keys are free when their job is final."""
    return _FINAL if set(states) == set(FINAL) else ", ".join(map(tables.code, states))
