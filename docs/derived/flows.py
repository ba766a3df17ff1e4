"""What becomes of a parent, from `ropeway.job.flows`."""

from __future__ import annotations

from typing import Final

from ropeway.job.flows import DEFAULT_POLICY, EFFECTS, ENDS, POLICIES, ChildEnd, Effect

from . import tables

_EFFECTS: Final[dict[Effect, str]] = {
    "done": "one less to wait for; its result or reason is kept",
    "fail": "it fails, with a reason that names the child",
    "remove": "it is removed, with its unfinished descendants",
    "start": "it starts now, once",
    "hold": "it waits until the child is retried and completes",
    "forget": "one less to wait for; nothing is kept",
}


def effects() -> str:
    head = ["child ended by", *(_policy(policy) for policy in POLICIES)]
    return tables.table(
        head, [[_moves(end), *_cells([row[policy] for policy in POLICIES])] for end, row in EFFECTS.items()]
    )


def _cells(row: list[Effect]) -> list[str]:
    """Once, if it is the same for all policies."""
    return [_EFFECTS[effect] if row.count(effect) == 1 or not at else "the same" for at, effect in enumerate(row)]


def _policy(policy: str) -> str:
    return f"{tables.code(policy)} (default)" if policy == DEFAULT_POLICY else tables.code(policy)


def _moves(end: ChildEnd) -> str:
    return ", ".join(tables.code(move) for move, led_to in ENDS.items() if led_to == end)
