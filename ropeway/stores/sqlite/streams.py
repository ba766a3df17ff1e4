"""events and revoked: streams that are read by a cursor."""

from __future__ import annotations

from collections.abc import Callable
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
def events(tx: Transaction, queue: str, after: str | None, inclusive: bool, limit: int) -> Entries:
    row = tx.queue(queue)
    if after == "now":
        return Entries([], str(row.events))
    number = _read(after)
    gap = after is not None and not _is_known_position(tx, row, number, inclusive)
    start = 0 if number is None or number > row.events else number
    first = row.first_event + start + (0 if inclusive and not gap else 1)
    found = _page(tx.get(_SQL["page"], {"first": first, "last": row.first_event + _NUMBER, "limit": limit}))
    entries: list[StoredEntry] = []
    for id, body in found:
        try:
            entries.append(StoredEntry(str(id & _NUMBER), _entry(body)))
        except msgspec.DecodeError:
            # Damaged in the file: the others are still worth reading.
            gap = True
    return Entries(entries, str(found[-1][0] & _NUMBER if found else row.events), gap)


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
