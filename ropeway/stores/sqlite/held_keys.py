"""Dedupe keys that jobs hold: reading and writing them, and freeing them when jobs end or are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from ...job.instants import Instant
from ...store.values import KeyHolder
from .decoding import decoder
from .promoting import promote
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("dedupe")
_held: Final[Callable[[bytes], list[tuple[str, KeyHolder]]]] = decoder(list[tuple[str, KeyHolder]])
_of_jobs: Final[Callable[[bytes], list[tuple[int, str, KeyHolder]]]] = decoder(list[tuple[int, str, KeyHolder]])
_delayed: Final[Callable[[bytes], list[tuple[int, str]]]] = decoder(list[tuple[int, str]])

Gone: TypeAlias = tuple[int, str, bool]
"""A job with a key that ends or is removed: sequence number, id, and whether it has ended, now or before."""


def read_holds(tx: Transaction, row: QueueRow, keys: Iterable[str]) -> dict[str, KeyHolder]:
    """Returns the keys that are held, also those whose time is over."""
    return dict(_held(tx.get(_SQL["held"], {"queue": row.id, "keys": as_json(list(keys))})))


def write_holds(tx: Transaction, row: QueueRow, holds: Mapping[str, KeyHolder | None]) -> None:
    """Writes who holds keys now; None frees one."""
    if held := [(key, hold.id, hold.until, hold.next) for key, hold in holds.items() if hold is not None]:
        tx.run(_SQL["write"], {"queue": row.id, "keys": as_json(held)})
    if free := [key for key, hold in holds.items() if hold is None]:
        tx.run(_SQL["free"], {"queue": row.id, "keys": as_json(free)})


def start_followers(tx: Transaction, row: QueueRow, ids: Sequence[str], now: Instant) -> None:
    """Promotes jobs that wait for the end of a holder, if they are still delayed."""
    followers = _delayed(tx.get(_SQL["delayed"], {"queue": row.id, "ids": as_json(ids)})) if ids else []
    if followers:
        promote(tx, row, followers, now)


def free_keys(tx: Transaction, row: QueueRow, jobs: Sequence[Gone]) -> list[str]:
    """Frees keys of jobs that end or are removed, before that is written; returns the ids of jobs that waited for them.

    A key that is held for a time stays, unless its job is removed before its end.
    """
    found = _of_jobs(tx.get(_SQL["of_jobs"], {"seqs": as_json([seq for seq, _, _ in jobs])}))
    holds: dict[str, KeyHolder | None] = {key: hold for _, key, hold in found}
    changed: dict[str, KeyHolder | None] = {}
    followers: list[str] = []
    for place, key, _ in found:
        _, id, has_ended = jobs[place]
        hold = holds[key]
        if hold is None:
            continue
        if hold.next == id:
            holds[key] = changed[key] = replace(hold, next=None)
        elif hold.id == id and (hold.until is None or not has_ended):
            holds[key] = changed[key] = None if hold.next is None else KeyHolder(hold.next)
            if hold.next is not None:
                followers.append(hold.next)
    if changed:
        write_holds(tx, row, changed)
    return followers
