"""events and revoked: what happened in a queue behind a position."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr, replace

from ....job.events import Entry, trim_entry
from ....job.instants import Instant
from ....store.commands import ReadEvents, ReadRevoked
from ....store.values import Entries, Revoked, RevokedLock, StoredEntry, Why
from ..executor import Executor
from ..ids import DAMAGED, text_of

_entry: Final = msgspec.json.Decoder(Entry).decode
_revoked: Final = msgspec.msgpack.Decoder(tuple[int, int, str, str, Why]).decode


async def events(on: Executor, command: ReadEvents, _: Instant | None) -> Entries:
    after = command.after
    is_given = after not in (None, "now")
    number, epoch = _read_event_id(after) if is_given and after is not None else (False, False)
    most = 0 if after == "now" else command.limit
    given = number, epoch, command.inclusive, most, is_given, command.newest_first
    found = _entries_of(await on.run("events", command.queue, *given))
    if command.newest_first and after is not None and not found.entries:
        return replace(found, cursor=after)
    return found


def _read_event_id(after: str) -> tuple[int | bool, int | bool]:
    number, _, epoch = after.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in (number, epoch)):
        return False, False
    return int(number), int(epoch)


def _entries_of(answer: list[Any]) -> Entries:
    found, newest, gap, gone = answer
    is_gap = bool(gap)
    entries: list[StoredEntry] = []
    for id, body in found:
        try:
            entry = _entry(body)
            force_setattr(entry, "jobs", [(text_of(job_id), detail) for job_id, detail in entry.jobs])
            left = trim_entry(entry, int(id.partition(b"-")[0]), gone, is_newest=False)
            if left is not None:
                entries.append(StoredEntry(id.decode(), left))
        except (msgspec.DecodeError, *DAMAGED):
            # Damaged by somebody: the others are still worth reading.
            is_gap = True
    cursor = found[-1][0] if found else newest
    return Entries(entries, cursor.decode(), is_gap)


async def revoked(on: Executor, command: ReadRevoked, _: Instant | None) -> Revoked:
    after = command.after
    is_known = after is not None and after.isascii() and after.isdecimal() and len(after) < 16
    number = int(after) if is_known and after is not None else False if after is None else 0
    locks, newest = await on.run("revoked", command.queue, number)
    found = [_revoked(lock) for lock in locks]
    if after is None:
        return Revoked([], newest.decode())
    revoked = [RevokedLock(text_of(id), token, why) for _, _, id, token, why in found]
    return Revoked(revoked, str(found[-1][0]) if found else after)
