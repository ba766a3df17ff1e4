"""events and revoked: streams that are read by a cursor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from ...job.events import Entry
from ...store import commands
from ...store.values import Entries, Revoked, RevokedLock, StoredEntry, Why
from .decoding import decoder
from .statements import statements
from .transaction import EVENT_BITS, QueueRow, Transaction
from .verbs import reads

_SQL: Final = statements("events")
_page: Final[Callable[[bytes], list[tuple[int, str]]]] = decoder(list[tuple[int, str]])
_entry: Final = msgspec.json.Decoder(Entry).decode
_revoked: Final[Callable[[bytes], list[tuple[int, str, str, Why]]]] = decoder(list[tuple[int, str, str, Why]])

_NUMBER: Final = (1 << EVENT_BITS) - 1


@reads(commands.ReadEvents)
def events(tx: Transaction, queue: str, after: str | None, inclusive: bool, limit: int, newest_first: bool) -> Entries:
    row = tx.queue(queue)
    if newest_first:
        return _read_back(tx, row, after, limit)
    if after == "now":
        return Entries([], str(row.events))
    number = _read(after)
    gap = after is not None and not _is_known_position(tx, row, number, inclusive)
    start = 0 if number is None or number > row.events else number
    first = row.first_event + start + (0 if inclusive and not gap else 1)
    found = _page(tx.get(_SQL["page"], {"first": first, "last": row.first_event + _NUMBER, "limit": limit}))
    entries = _decoded(found)
    cursor = str(found[-1][0] & _NUMBER if found else row.events)
    return Entries(entries, cursor, gap or len(entries) < len(found))


def _read_back(tx: Transaction, row: QueueRow, before: str | None, limit: int) -> Entries:
    number = _read(before)
    if before is not None and (number is None or not tx.get(_SQL["exists"], {"id": row.first_event + number})):
        return Entries([], before, gap=True)
    last = row.first_event + (_NUMBER if number is None else number - 1)
    found = _page(tx.get(_SQL["page_back"], {"first": row.first_event, "last": last, "limit": limit}))
    entries = _decoded(found)
    cursor = str(found[-1][0] & _NUMBER) if found else before or str(row.events)
    return Entries(entries, cursor, gap=len(entries) < len(found))


def _decoded(found: list[tuple[int, str]]) -> list[StoredEntry]:
    """Without those that are damaged in the file: the others are still worth reading."""
    entries: list[StoredEntry] = []
    for id, body in found:
        with suppress(msgspec.DecodeError):
            entries.append(StoredEntry(str(id & _NUMBER), _entry(body)))
    return entries


def _is_known_position(tx: Transaction, row: QueueRow, number: int | None, inclusive: bool) -> bool:
    """True if a reader at this position has missed nothing."""
    if number is None:
        return False
    if tx.get(_SQL["exists"], {"id": row.first_event + number}):
        return True
    # Or it is where the stream begins, if that was never trimmed.
    return number == row.events_from and not inclusive


def _read(after: str | None) -> int | None:
    if after is None or not (after.isascii() and after.isdecimal()):
        return None
    number = int(after[:20])
    return number if number <= _NUMBER else None


@reads(commands.ReadRevoked, sees_inbox=False)
def revoked(tx: Transaction, queue: str, after: str | None) -> Revoked:
    row = tx.queue(queue)
    if after is None:
        return Revoked([], str(tx.get(_SQL["newest_revoked"])))
    number = _read(after) or 0
    found = _revoked(tx.get(_SQL["revoked"], {"queue": row.id, "after": number}))
    cursor = str(found[-1][0]) if found else after
    return Revoked([RevokedLock(id, token, why) for _, id, token, why in found], cursor)
