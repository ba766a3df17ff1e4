"""children: pages of a job's children, as it knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import apsw

from ...job.flows import CHILD_STATES, ChildState
from ...store.commands import ReadChildren
from ...store.values import Children, ChildStatus
from .decoding import decoder
from .statements import statements
from .transaction import Transaction, as_json
from .verbs import reads

_SQL: Final = statements("flows")
_page: Final[Callable[[bytes], list[tuple[int, ChildStatus]]]] = decoder(list[tuple[int, ChildStatus]])


@reads(ReadChildren)
def children(
    tx: Transaction, queue: str, id: str, states: Sequence[ChildState], after: str | None, limit: int
) -> Children | None:
    found = tx.get(_SQL["family_of"], {"queue": tx.queue(queue).id, "id": id})
    if found is None:
        return None
    family, awaited, *numbers = found
    if family is None:
        return Children([], dict.fromkeys(CHILD_STATES, 0))
    first = int(after) if after and after.isdecimal() else 0
    # One more than fits says whether there is another page.
    values = {"family": family, "states": as_json(states), "first": first, "limit": limit + 1}
    try:
        page = _page(tx.get(_SQL["page"], values))
    except apsw.TooBigError:
        if limit == 1:
            raise
        return children(tx, queue, id, states, after, limit // 2)
    following = str(page[limit][0]) if len(page) > limit else None
    counts: dict[ChildState, int] = dict(zip(CHILD_STATES, numbers, strict=True))
    return Children([child for _, child in page[:limit]], counts, following, bool(awaited))
