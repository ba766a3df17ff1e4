"""Iterating over a queue's event stream."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Final

from ..errors import InvalidOption
from ..job.events import Event, expand, split_id
from ..showing import shown
from ..store.contract import Store

_ID: Final = re.compile(r"[0-9a-z]{0,40}-?[0-9]{1,20}(/[0-9]{1,19})?")
"""An entry, and perhaps the number of an event in it."""

SAFETY_POLL: Final = 5.0
"""Seconds after which a reader polls even without a wake-up."""


async def read_events(store: Store, queue: str, after: str, *, follow: bool) -> AsyncGenerator[Event, None]:
    """Events in order, each at least once: the kept ones, and with `follow` also later ones.

    `after` is "now", "start" (the oldest kept), or the id of an event seen before. Events that were trimmed before
    they were read are announced by one event named `gap`.
    """
    listener = store.listen("events", [queue]) if follow else None
    try:
        cursor, seen, inclusive = await _begin(store, queue, after)
        while True:
            page = await store.events(queue, cursor, inclusive=inclusive)
            if page.gap:
                assert cursor is not None
                # Resumed from this id, the stream reports the gap again, and skips nothing after it.
                at = page.entries[0].entry.at if page.entries else 0
                yield Event(cursor, queue, "gap", None, at, {"after": cursor})
            for stored in page.entries:
                first = seen + 1 if inclusive and stored.id == cursor else 0
                if 0 < first < stored.entry.trimmed:
                    yield Event(after, queue, "gap", None, stored.entry.at, {"after": after})
                for number, event in enumerate(expand(queue, stored.id, stored.entry), stored.entry.trimmed):
                    if number >= first:
                        yield event
            cursor, inclusive = page.cursor, False
            if not page.entries:
                if listener is None:
                    return
                await listener.wait(SAFETY_POLL)
    finally:
        if listener is not None:
            listener.close()


async def newest_event(store: Store, queue: str) -> str:
    return (await store.events(queue, "now")).cursor


def is_event_id(text: str) -> bool:
    """True if the text looks like an event id of any store; the event itself need not exist."""
    return _ID.fullmatch(text) is not None


def position(after: object) -> str:
    """Checks an `after`: "now", "start", or the id of an event."""
    if isinstance(after, str) and (after in ("now", "start") or is_event_id(after)):
        return after
    raise InvalidOption("after", f'cannot be {shown(after)}: use "now", "start" or the id of an event')


async def _begin(store: Store, queue: str, after: object) -> tuple[str | None, int, bool]:
    start = position(after)
    if start == "start":
        return None, 0, False
    if start == "now":
        return await newest_event(store, queue), 0, False
    entry, seen = split_id(start)
    # After the whole entry nothing of it is read again, so it need not exist any more.
    return (entry, 0, False) if "/" not in start else (entry, seen, True)
