"""The states of a job and the moves between them, from `ropeway.job.moves`."""

from __future__ import annotations

from ropeway.job.moves import MOVES, Move, is_legal
from ropeway.job.states import IN_USE, State

from . import tables

NOTHING = "–"


def table() -> str:
    rows = [[move.name, _states(move.sources), _states(move.targets), _rule(move)] for move in moves_in_use()]
    return tables.table(["move", "from", "to", "rule"], rows)


def moves_in_use() -> list[Move]:
    """Those that a job can make today: not those out of states that nothing leads to."""
    return [move for move in MOVES.values() if not move.sources or {*move.sources} & {*IN_USE}]


def matrix() -> str:
    """Every step that is legal: rows are where a job comes from, columns where it goes."""
    places: list[State | None] = [None, *IN_USE]
    head = ["from \\ to", *(state for state in IN_USE), "gone"]
    rows = [[_place(source), *(_between(source, target) for target in (*IN_USE, None))] for source in places]
    return tables.table(head, rows)


def _between(source: State | None, target: State | None) -> str:
    return ", ".join(move for move in MOVES if is_legal(move, source, target))


def _states(states: tuple[State, ...]) -> str:
    return ", ".join(tables.code(state) for state in states if state in IN_USE) or NOTHING


def _place(state: State | None) -> str:
    return "new" if state is None else f"**{state}**"


def _rule(move: Move) -> str:
    return f"{move.rule}; only with the token of its claim" if move.fenced else move.rule
