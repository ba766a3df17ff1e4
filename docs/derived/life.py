"""The states of a job and the moves between them, from `ropeway.job.moves`."""

from __future__ import annotations

from ropeway.job.moves import MOVES, Move, is_legal
from ropeway.job.states import STATES, State

from . import tables

NOTHING = "–"


def table() -> str:
    rows = [[move.name, _states(move.sources), _states(move.targets), _rule(move)] for move in MOVES.values()]
    return tables.table(["move", "from", "to", "rule"], rows)


def matrix() -> str:
    """Every step that is legal: rows are where a job comes from, columns where it goes."""
    places: list[State | None] = [None, *STATES]
    head = ["from \\ to", *STATES, "gone"]
    rows = [[_place(source), *(_between(source, target) for target in (*STATES, None))] for source in places]
    return tables.table(head, rows)


def _between(source: State | None, target: State | None) -> str:
    return ", ".join(move for move in MOVES if is_legal(move, source, target))


def _states(states: tuple[State, ...]) -> str:
    return ", ".join(tables.code(state) for state in states) or NOTHING


def _place(state: State | None) -> str:
    return "new" if state is None else f"**{state}**"


def _rule(move: Move) -> str:
    return f"{move.rule}; only with the token of its claim" if move.fenced else move.rule
