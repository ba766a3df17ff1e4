"""get, find, count and the other questions; none of them changes anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import apsw
import msgspec

from ...errors import InvalidOption
from ...job.instants import Instant
from ...job.record import JobRecord
from ...job.states import FINAL, State
from ...store.values import Counts, FailedAttempt, History, LogLine, Metric, Page, Query, Settings
from .claiming import records, records_of
from .places import find_places
from .reading import reader
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_LOOK: Final = statements("look")
_FIND: Final = statements("find")
_QUEUE: Final = statements("queue")
_metrics: Final[Callable[[bytes], list[Metric]]] = reader(list[Metric])
_failures: Final[Callable[[bytes], list[FailedAttempt]]] = reader(list[FailedAttempt])
_log: Final[Callable[[bytes], list[LogLine]]] = reader(list[LogLine])
_names: Final[Callable[[bytes], list[str]]] = reader(list[str])
_keys: Final[Callable[[bytes], list[tuple[int, int, int]]]] = reader(list[tuple[int, int, int]])

_BEFORE_ALL: Final = -(2**62)
_AFTER_ALL: Final = 2**62


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The last job of a page: its state's place in the query, and its key in that state's order."""

    state: int
    first: int
    second: int


_cursor: Final = msgspec.json.Decoder(Cursor).decode


def get(tx: Transaction, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
    row = tx.queue(queue)
    try:
        found = records(tx.get(_LOOK["records"], {"queue_name": queue, "queue": row.id, "ids": as_json(ids)}))
    except apsw.TooBigError:
        if len(ids) == 1:
            raise
        half = len(ids) // 2
        return get(tx, queue, ids[:half]) + get(tx, queue, ids[half:])
    known = {job.id: job for job in found}
    return [known.get(id) for id in ids]


def find(tx: Transaction, query: Query) -> Page:
    row = tx.queue(query.queue)
    states = query.states[::-1] if query.newest_first else query.states
    start = _read_cursor(query, len(states))
    end = _AFTER_ALL if not query.newest_first else _BEFORE_ALL
    beginning = -end
    seqs: list[int] = []
    last = start
    for number, state in enumerate(states):
        if number < start.state:
            continue
        key = (start.first, start.second) if number == start.state and query.after else (beginning, beginning)
        # One more than fits says whether there is another page.
        wanted = query.limit - len(seqs) + 1
        for seq, first, second in _find_in(tx, row, state, query, key, wanted):
            if len(seqs) == query.limit:
                return Page(records_of(tx, row, seqs), as_json(last))
            seqs.append(seq)
            last = Cursor(number, first, second)
    return Page(records_of(tx, row, seqs))


def _find_in(
    tx: Transaction, row: QueueRow, state: State, query: Query, key: tuple[int, int], limit: int
) -> list[tuple[int, int, int]]:
    statement = "finished" if state in FINAL else state
    values = {"queue": row.id, "name": query.name, "limit": limit, "first": key[0], "second": key[1]}
    if state in FINAL:
        values["state"] = state
    return _keys(tx.get(_FIND[f"{statement}_reversed" if query.newest_first else statement], values))


def _read_cursor(query: Query, states: int) -> Cursor:
    if query.after is None:
        return Cursor(0, 0, 0)
    try:
        cursor = _cursor(query.after)
    except (msgspec.MsgspecError, UnicodeError):
        cursor = None
    if cursor is None or not 0 <= cursor.state < states or max(abs(cursor.first), abs(cursor.second)) > 2**62:
        raise InvalidOption("after", f"cannot be {query.after!r:.80}: use the `next` of the page before")
    return cursor


def count(tx: Transaction, queue: str) -> Counts:
    return tx.queue(queue).counts.copy()


def metrics(tx: Transaction, queue: str, since: Instant) -> list[Metric]:
    row = tx.queue(queue)
    found = _metrics(tx.get(_LOOK["metrics"], {"queue": row.id, "since": since}))
    newest = row.newest_minute
    return [*found, Metric(**newest)] if newest and newest["minute"] >= since else found


def history(tx: Transaction, queue: str, id: str) -> History | None:
    [place] = find_places(tx, tx.queue(queue), [id])
    if place.state is None:
        return None
    failures = _failures(tx.get(_LOOK["failures"], {"seq": place.seq}))
    log = _log(tx.get(_LOOK["log"], {"seq": place.seq}))
    return History(failures, log, place.logged - len(log))


def settings(tx: Transaction, queue: str) -> Settings:
    return tx.queue(queue).settings


def queues(tx: Transaction) -> list[str]:
    return _names(tx.get(_QUEUE["names"]))


def clock(tx: Transaction) -> Instant:
    tx.saw(tx.get(_QUEUE["newest_instant"]) or 0)
    return tx.now()


def data_version(tx: Transaction) -> int:
    """Changes when another connection commits; see `wake.FileListener`."""
    return int(tx.get("PRAGMA data_version"))
