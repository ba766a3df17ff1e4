"""Iterating over a queue's event stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from ..errors import InvalidOption
from ..job.events import Event, expand, split_id
from ..showing import shown
from ..store.contract import Store

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


async def _begin(store: Store, queue: str, after: object) -> tuple[str | None, int, bool]:
    wrong = InvalidOption("after", f'cannot be {shown(after)}: use "now", "start" or the id of an event')
    if not isinstance(after, str):
        raise wrong
    if after == "start":
        return None, 0, False
    if after == "now":
        return await newest_event(store, queue), 0, False
    try:
        entry, seen = split_id(after)
    except ValueError:
        raise wrong from None
    if not any(map(str.isdigit, entry)):
        raise wrong
    # After the whole entry nothing of it is read again, so it need not exist any more.
    return (entry, 0, False) if "/" not in after else (entry, seen, True)
