"""find: pages of jobs, by keys that stay where they are while jobs come, go and move.

Jobs with a rare tag come from the index of tags, and are sorted here. Those with a frequent one are picked from the
listing of each state, where the next of them is not far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ...job.instants import LAST_INSTANT, Instant
from ...job.states import FINAL, State
from ...store.commands import Find
from ...store.cursors import BEYOND_ALL, PairCursor, cursor_reader, states_left
from ...store.values import Page
from .decoding import decoder
from .locating import records_of
from .statements import statements
from .transaction import QueueRow, Transaction
from .verbs import reads

FEW: Final = 2_000
"""Jobs with one tag that are sorted at once for a page."""

Key: TypeAlias = tuple[int, int]
"""Sort key of a job within its state."""
Found: TypeAlias = tuple[int, int, int]
"""Sequence number and key."""
Listing: TypeAlias = Callable[[State, Key, int], list[Found]]
"""Returns at most so many jobs of a state, from a key on."""


class Tagged(NamedTuple):
    """A job with the tag, and the columns that the states are sorted by."""

    seq: int
    name: str
    state: State
    priority: int
    order: int
    due_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None

    @property
    def key(self) -> Key:
        """Sort key within the state, the same as in `find.sql`."""
        match self.state:
            case "waiting":
                return self.priority, self.order
            case "waiting-children":
                return self.seq, 0
            case "delayed":
                return self.due_at or 0, self.order
            case "active":
                return self.started_at or 0, self.seq
            case _:
                return self.finished_at or 0, self.seq


_SQL: Final = statements("find")
_found: Final[Callable[[bytes], list[Found]]] = decoder(list[Found])
_tagged: Final[Callable[[bytes], list[Tagged]]] = decoder(list[Tagged])
_read_cursor: Final = cursor_reader(PairCursor)


@reads(Find, takes_whole=True)
def find(tx: Transaction, query: Find) -> Page:
    row = tx.queue(query.queue)
    start = _read_cursor(query)
    seqs: list[int] = []
    last = start
    for state, (seq, first, second) in _all_found(query, start, _listing(tx, row, query)):
        if len(seqs) == query.limit:
            return Page(records_of(tx, row, seqs), str(last))
        seqs.append(seq)
        last = PairCursor(state, first, second)
    return Page(records_of(tx, row, seqs))


def _all_found(query: Find, start: PairCursor | None, listing: Listing) -> Iterator[tuple[State, Found]]:
    """Yields jobs in order: one more than fits the page, which tells that there is another page."""
    beginning = BEYOND_ALL if query.newest_first else -BEYOND_ALL
    key = (start.first, start.second) if start else (beginning, beginning)
    left = query.limit + 1
    for state in states_left(query, start):
        found = listing(state, key, left)
        for each in found:
            yield state, each
        left -= len(found)
        if not left:
            return
        key = (beginning, beginning)


def _listing(tx: Transaction, row: QueueRow, query: Find) -> Listing:
    if query.tag is not None:
        tag = {"queue": row.id, "tag": query.tag, "limit": FEW + 1}
        if tx.get(_SQL["count_tagged"], tag) <= FEW:
            tagged = _tagged(tx.get(_SQL["tagged"], tag))
            until = _until(row, query)
            return _by_tag([job for job in tagged if (job.finished_at or 0) <= until], query)
    return _by_state(tx, row, query)


def _until(row: QueueRow, query: Find) -> Instant:
    """The last instant at which jobs may have ended."""
    if not query.stale:
        return LAST_INSTANT
    return row.stages.stale_until if row.stages else -1


def _by_state(tx: Transaction, row: QueueRow, query: Find) -> Listing:
    values = {"queue": row.id, "name": query.name, "tag": query.tag, "until": _until(row, query)}

    def listed(state: State, key: Key, limit: int) -> list[Found]:
        statement = "finished" if state in FINAL else state
        direction = "_reversed" if query.newest_first else ""
        after = {"state": state, "first": key[0], "second": key[1], "limit": limit}
        return _found(tx.get(_SQL[statement + direction], {**values, **after}))

    return listed


def _by_tag(tagged: list[Tagged], query: Find) -> Listing:
    def listed(state: State, key: Key, limit: int) -> list[Found]:
        keys = sorted(
            ((job.key, job.seq) for job in tagged if job.state == state and query.name in (None, job.name)),
            reverse=query.newest_first,
        )
        after = [(seq, *own) for own, seq in keys if (own < key if query.newest_first else own > key)]
        return after[:limit]

    return listed
