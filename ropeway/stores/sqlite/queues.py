"""configure, publish, trim_events, clean, obliterate: what is done to a whole queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ...errors import InvalidOption
from ...job.codec import JsonText
from ...job.events import EVENTS_KEPT, PUBLISHED, Entry, published_detail, trim_entry
from ...job.instants import Instant, Milliseconds
from ...job.states import FINAL, State
from ...store import commands
from ...store.staging import stages_after
from ...store.values import BATCH, Cleaned, Settings
from .decoding import decoder
from .ending import remove
from .finishing import Removal, removals
from .statements import statements
from .transaction import QueueRow, Transaction, as_json
from .verbs import writes

TRIMMED_EVERY: Final = 1_000
"""Published events between two trims, in a queue that nobody ticks."""

_SQL: Final = statements("remove")
_EVENTS: Final = statements("events")
_FREE_ALL_KEYS: Final = statements("dedupe")["free_all"]
_DELETE_SCHEDULES: Final = statements("schedules")["delete_all"]
_entry: Final[Callable[[bytes], Entry]] = decoder(Entry)


@writes(commands.Configure, takes_whole=True)
def configure(tx: Transaction, command: commands.Configure) -> Settings:
    stages = stages_after(tx.queue(command.queue).stages, command)
    row = tx.queue(command.queue, create=True)
    now = tx.now()
    before = row.settings
    row.stages = stages
    if command.pause is not None:
        row.paused = command.pause
    row.paused_names = tuple(sorted({*row.paused_names, *command.pause_names} - {*command.resume_names}))
    if command.max_active is not None:
        row.max_active = command.max_active or None
    after = row.settings
    row.is_configured = row.is_changed = True
    if after.paused != before.paused:
        row.announce("paused" if after.paused else "resumed", now)
    for name in after.paused_names:
        if name not in before.paused_names:
            row.announce("paused", now, detail={"name": name})
    for name in before.paused_names:
        if name not in after.paused_names:
            row.announce("resumed", now, detail={"name": name})
    if after != before:
        tx.wake("jobs", row)
    return after


@writes(commands.Publish)
def publish(tx: Transaction, queue: str, name: str, data: JsonText, job: str | None) -> None:
    row = tx.queue(queue, create=True)
    row.announce(PUBLISHED, tx.now(), detail=msgspec.Raw(published_detail(name, data, job)))
    bounds = {"first": row.first_event, "last": row.first_event + row.events}
    oldest: int | None = tx.get(_EVENTS["oldest"], bounds)
    if oldest is not None and bounds["last"] - oldest > EVENTS_KEPT + TRIMMED_EVERY:
        # A queue that has events and no worker is ticked by nobody.
        trim_events(tx, queue, EVENTS_KEPT)


@writes(commands.TrimEvents)
def trim_events(tx: Transaction, queue: str, keep: int) -> None:
    row = tx.queue(queue)
    # Entries of this round may have to go, too.
    tx.save(row)
    gone = row.events - max(1, keep)
    if gone <= 0:
        return
    last, is_trimmed = _trim_entry(tx, row, gone)
    if tx.change(_SQL["events"], {"first": row.first_event, "last": last}) or is_trimmed:
        row.events_from = None
        row.is_changed = True


def _trim_entry(tx: Transaction, row: QueueRow, gone: int) -> tuple[int, bool]:
    """Trims the entry that has the first event behind the number `gone`.

    Answers the id of the last entry to go as a whole, and whether something of that one is gone.
    """
    newest, last = row.first_event + row.events, row.first_event + gone
    found = tx.get(_EVENTS["entry_from"], {"first": last + 1, "last": newest})
    if found is None:
        return last, False
    id, body = found
    try:
        entry = _entry(body)
    except msgspec.DecodeError:
        # Damaged: it stays until all of it is in excess.
        return last, False
    left = trim_entry(entry, id - row.first_event, gone, is_newest=id == newest)
    if left is None:
        return id, False
    if left is not entry:
        tx.run(_EVENTS["replace"], {"id": id, "body": as_json(left)})
    return last, left is not entry


@writes(commands.Clean)
def clean(tx: Transaction, queue: str, state: State, older_than: Milliseconds, limit: int) -> Cleaned:
    if state == "active":
        raise InvalidOption("state", "cannot be 'active': cancel or remove running jobs instead")
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    limit = max(0, min(limit, BATCH))
    # One more than may go says whether others remain.
    found = _oldest(tx, row, state, now - older_than, limit + 1)
    jobs = found[:limit]
    if jobs:
        remove(tx, row, jobs, now)
        row.announce("cleaned", now, detail={"count": len(jobs), "state": state})
        tx.notice_drained(row, busy)
    return Cleaned([job.id for job in jobs], more=len(found) > limit)


def _oldest(tx: Transaction, row: QueueRow, state: State, until: Instant, limit: int) -> list[Removal]:
    statement = "oldest_finished" if state in FINAL else f"oldest_{state.replace('-', '_')}"
    return removals(tx.get(_SQL[statement], {"queue": row.id, "state": state, "until": until, "limit": limit}))


@writes(commands.Obliterate)
def obliterate(tx: Transaction, queue: str, force: bool) -> Cleaned:
    row = tx.queue(queue)
    if not row.id:
        return Cleaned([])
    now = tx.now()
    row.paused = row.is_configured = row.is_changed = True
    if row.counts["active"] and not force:
        return Cleaned([], active=row.counts["active"])
    jobs = removals(tx.get(_SQL["any_of_queue"], {"queue": row.id, "limit": BATCH}))
    # Its events go with the queue.
    remove(tx, row, jobs, now, quietly=True)
    more = any(row.counts.values())
    if not more:
        _forget(tx, row)
    return Cleaned([job.id for job in jobs], more=more)


def _forget(tx: Transaction, row: QueueRow) -> None:
    """Deletes everything about the queue but the number of its newest event."""
    for statement in (_SQL["metrics"], _FREE_ALL_KEYS, _DELETE_SCHEDULES):
        tx.run(statement, {"queue": row.id})
    tx.run(_SQL["events"], {"first": row.first_event, "last": row.first_event + row.events})
    row.events_from = row.events
    row.entries = []
    row.metrics = []
    row.newest_minute = None
    row.paused = row.is_configured = False
    row.paused_names = ()
    row.max_active = None
    row.stages = None
