"""Operations on many jobs, in as many bounded store calls as needed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import QueueBusy
from ..job.instants import Milliseconds
from ..job.numbers import whole
from ..job.record import JobRecord
from ..job.states import State
from ..store.commands import Find
from ..store.contract import Store
from ..store.doubt import in_doubt
from ..store.values import BATCH, Answer

NO_LIMIT = 2**53


async def move_all(
    store: Store,
    queue: str,
    state: State,
    limit: int | None,
    move: Callable[[list[str]], Coroutine[Any, Any, list[Answer]]],
    concerns: Callable[[JobRecord], bool],
) -> int:
    """Moves the matching jobs of a state, page by page; returns how many."""
    moved, after = 0, None
    left = _checked(limit)
    while left > 0:
        with in_doubt(moved > 0):
            page = await store.find(Find(queue, (state,), limit=min(left, BATCH), after=after))
            ids = [record.id for record in page.jobs if concerns(record)]
            if ids:
                answers = await move(ids)
                moved += sum(answer.verdict == "done" for answer in answers)
                left -= len(ids)
        if page.next is None:
            break
        after = page.next
    return moved


async def clean_all(store: Store, queue: str, state: State, older_than: Milliseconds, limit: int | None) -> list[str]:
    ids: list[str] = []
    left = _checked(limit)
    started = await store.clock()
    while left > 0:
        with in_doubt(bool(ids)):
            # Jobs added since it began are not included.
            since = await store.clock() - started
            cleaned = await store.clean(queue, state, older_than=older_than + since, limit=min(left, BATCH))
        ids += cleaned.ids
        left -= len(cleaned.ids)
        if not cleaned.more:
            break
    return ids


async def obliterate_all(store: Store, queue: str, *, force: bool) -> int:
    removed = 0
    while True:
        with in_doubt(removed > 0):
            cleaned = await store.obliterate(queue, force=force)
        if cleaned.active:
            raise QueueBusy(queue, cleaned.active)
        removed += len(cleaned.ids)
        if not cleaned.more:
            return removed


def _checked(limit: int | None) -> int:
    return NO_LIMIT if limit is None else whole("limit", limit, 1, NO_LIMIT)
