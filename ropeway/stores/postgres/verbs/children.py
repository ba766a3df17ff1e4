"""children: pages of a job's children, as it knows them."""

from __future__ import annotations

from collections.abc import Sequence

from ....job.flows import CHILD_STATES, ChildState
from ....job.instants import Instant
from ....store.commands import ReadChildren
from ....store.values import Children, ChildStatus
from ..executor import Executor
from ..link import Row
from ..parameters import amount, number, text, texts


async def children(on: Executor, command: ReadChildren, _: Instant | None) -> Children | None:
    after = command.after
    last = int(after) if after and after.isascii() and after.isdecimal() and len(after) < 19 else 0
    rows = await on.call(
        "children",
        text(command.queue),
        text(command.id),
        texts(command.states),
        number(last),
        amount(command.limit + 1),
    )
    return _children_of(rows, command.limit)


def _children_of(rows: Sequence[Row], limit: int) -> Children | None:
    """A page of children; `sql/children.sql` was asked for one more than fits."""
    if not rows:
        return None
    [(counts, numbers, *columns)] = rows
    totals: dict[ChildState, int] = dict.fromkeys(CHILD_STATES, 0)
    *each, awaited = counts or [0]
    totals.update(zip(CHILD_STATES, each, strict=False))
    found = [ChildStatus(*fields) for fields in zip(*columns, strict=True)] if numbers else []
    return Children(found[:limit], totals, str(numbers[limit - 1]) if len(found) > limit else None, bool(awaited))
