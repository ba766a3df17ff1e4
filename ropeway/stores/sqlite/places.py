"""Where the jobs of a batch stand: to decide by it, and to take them from there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from ...job.options import StoredOptions, readable_options
from ...job.states import State
from .reading import reader
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

K = TypeVar("K")
T = TypeVar("T")

_SQL: Final = statements("look")
_LEAVE: Final = statements("leave")
TABLES: Final[dict[State, str]] = {
    "waiting": "waiting",
    "waiting-children": "later",
    "delayed": "later",
    "active": "active",
    "completed": "finished",
    "failed": "finished",
    "cancelled": "finished",
}


class Place(msgspec.Struct, array_like=True, gc=False):
    """Changed by the verbs as they go, so that an id that comes twice meets what its first time did."""

    seq: int
    id: str
    state: State | None
    """None where there is no such job."""
    token: str | None
    worker: str | None
    attempts_started: int
    logged: int


_places: Final[Callable[[bytes], list[Place]]] = reader(list[Place])
_options: Final[Callable[[bytes], list[tuple[int, str]]]] = reader(list[tuple[int, str]])


def find_places(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> list[Place]:
    """One for each id, in order; the same one for the same id."""
    known = _find_claimed(tx, row, ids)
    if others := [id for id in ids if id not in known]:
        found = _places(tx.get(_SQL["places"], {"queue": row.id, "ids": as_json(others)}))
        known.update({place.id: place for place in found})
    for id in ids:
        if id not in known:
            known[id] = Place(0, id, None, None, None, 0, 0)
    return [known[id] for id in ids]


def _find_claimed(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> dict[str, Place]:
    """By id, those that this process claimed and that are still active: the table of all jobs is not looked into."""
    claimed = tx.seqs_of_claimed(row, ids)
    if not claimed:
        return {}
    places = _places(tx.get(_SQL["active_places"], {"seqs": as_json(list(claimed))}))
    for place in places:
        place.id = claimed[place.seq]
    return {place.id: place for place in places}


def leave(tx: Transaction, state: State, seqs: Sequence[int]) -> None:
    """Takes jobs of one state from where they stood."""
    tx.run(_LEAVE[TABLES[state]], {"seqs": as_json(seqs)})


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by their key, in their order."""
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def options_of(tx: Transaction, seqs: Iterable[int]) -> dict[int, StoredOptions]:
    rows = _options(tx.get(_SQL["options"], {"seqs": as_json(list(seqs))}))
    return {seq: readable_options(options) for seq, options in rows}
