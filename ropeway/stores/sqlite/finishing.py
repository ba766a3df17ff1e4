"""Makes jobs final, and removes them, a batch at a time; `ending.py` does that with what follows for their parents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import attrgetter, or_
from typing import Any, Final

import msgspec

from ...job.codec import JsonText
from ...job.instants import Instant
from ...job.moves import MOVES, MoveName
from ...job.options import StoredOptions
from ...job.retention import KEEP_FAILED, Retention
from ...job.states import FINAL, State
from ...store.values import BATCH, Why
from .decoding import decoder
from .families import News, news_of
from .locating import delete_state_rows, grouped
from .placeholders import HAS_CHILDREN, HAS_PARENTS, HAS_TAGS
from .statements import statements
from .transaction import Detail, QueueRow, Transaction, as_json

_END: Final = statements("end")
_REMOVE: Final = statements("remove")
_source: Final = attrgetter("source")
_state: Final = attrgetter("state")


class Ending(msgspec.Struct, frozen=True, gc=False):
    """A job that becomes final."""

    seq: int
    id: str
    source: State
    keep: Retention
    detail: Detail = None
    """Announced with the move."""
    reason: str | None = None
    result: JsonText | None = None
    revoked: str | None = None
    """Token of a worker that still runs it; it is revoked."""
    extras: int = 0


class Removal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job that is removed."""

    seq: int
    id: str
    state: State
    extras: int = 0
    token: str | None = None
    """Token of a worker that still runs it; it is revoked."""


removals: Final[Callable[[bytes], list[Removal]]] = decoder(list[Removal])


def finish(
    tx: Transaction,
    row: QueueRow,
    move: MoveName,
    jobs: Sequence[Ending],
    now: Instant,
    *,
    attempts: int = 0,
    stalls: int = 0,
    detail: Detail = None,
) -> list[News]:
    """Makes jobs final by one move, and announces it; returns what to tell their parents.

    `attempts` and `stalls` are added to those of each job; `detail` is about all of them.
    """
    [state] = MOVES[move].targets
    values = {
        "state": state,
        "now": now,
        "attempts": attempts,
        "stalls": stalls,
        # Of a fenced move, so that a repeated settle is recognised. Others come from somewhere else than the worker,
        # which still runs the handler: without its token a late result is refused.
        "keeps_token": MOVES[move].fenced,
    }
    for source, group in _by_source(MOVES[move].sources, jobs).items():
        _write(tx, source, group, values, now)
        delete_state_rows(tx, source, [job.seq for job in group])
        row.move(source, state, len(group))
        if source == "active":
            _release(tx, row, [job.id for job in group])
    row.announce(move, now, state, [(job.id, job.detail) for job in jobs], detail)
    if not MOVES[move].fenced:
        _revoke(tx, row, [(job.id, job.revoked) for job in jobs if job.revoked], "cancelled", now)
    told = [(job.seq, job.id, job.reason, job.result) for job in jobs if job.extras & HAS_PARENTS]
    return news_of(tx, row, move, told) if told else []


def drop(tx: Transaction, row: QueueRow, jobs: Sequence[Removal], now: Instant, *, quietly: bool = False) -> list[News]:
    """Removes jobs with everything about them, and announces it unless that is to be done quietly.

    Returns what to tell the parents of those that had not ended.
    """
    if not jobs:
        return []
    told = [(job.seq, job.id, None, None) for job in jobs if job.extras & HAS_PARENTS and job.state not in FINAL]
    news = news_of(tx, row, "remove", told) if told else []
    for state, group in grouped(jobs, _state).items():
        delete_state_rows(tx, state, [job.seq for job in group])
        row.move(state, None, len(group))
        if state == "active":
            _release(tx, row, [job.id for job in group])
            _revoke(tx, row, [(job.id, job.token) for job in group], "removed", now)
    seqs = {"seqs": as_json([job.seq for job in jobs])}
    extras = reduce(or_, [job.extras for job in jobs])
    if extras & HAS_CHILDREN:
        tx.run(_REMOVE["links"], seqs)
        tx.run(_REMOVE["families"], seqs)
    tx.run(_REMOVE["jobs"], seqs)
    if extras & HAS_TAGS:
        tx.run(_REMOVE["tags"], seqs)
    for table, has_rows in zip(("failures", "log"), tx.get(_REMOVE["has_more"]), strict=True):
        if has_rows:
            tx.run(_REMOVE[table], seqs)
    if not quietly:
        row.announce("remove", now, None, [(job.id, {"prev": job.state}) for job in jobs])
    return news


def keep_of_failed(options: StoredOptions) -> Retention:
    """Retention of a job that ends without a worker's rule."""
    return options.keep_failed or KEEP_FAILED


def _by_source(sources: Sequence[State], jobs: Sequence[Ending]) -> Mapping[State, Sequence[Ending]]:
    return {sources[0]: jobs} if len(sources) == 1 else grouped(jobs, _source)


def _write(tx: Transaction, source: State, jobs: Sequence[Ending], values: dict[str, Any], now: Instant) -> None:
    """Inserts jobs of one source into `finished`: a statement per expiry, another for those with a reason or result."""
    alike: defaultdict[Instant | None, list[int]] = defaultdict(list)
    others: defaultdict[Instant | None, list[tuple[int, str | None, JsonText | None]]] = defaultdict(list)
    for job in jobs:
        if job.reason is None and job.result is None and source == "active":
            alike[job.keep.until(now)].append(job.seq)
        else:
            others[job.keep.until(now)].append((job.seq, job.reason, job.result))
    for expires_at, seqs in alike.items():
        tx.run(_END["alike"], {**values, "expires_at": expires_at, "ended": as_json(seqs)})
    statement = _END["active" if source == "active" else "anywhere"]
    for expires_at, ended in others.items():
        tx.run(statement, {**values, "expires_at": expires_at, "ended": as_json(ended)})


def _release(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> None:
    """Forgets jobs that are no longer active, and wakes claimers if the queue limits how many may be."""
    if ids:
        tx.forget_claimed(row, ids)
        if row.max_active is not None:
            tx.wake("jobs", row)


def _revoke(tx: Transaction, row: QueueRow, locks: Iterable[tuple[str, str | None]], why: Why, now: Instant) -> None:
    if encoded := [(id, token or "") for id, token in locks]:
        tx.run(_END["revoke"], {"queue": row.id, "now": now, "why": why, "locks": as_json(encoded)})
        tx.wake("revoked", row)


def apply_retention(tx: Transaction, row: QueueRow, state: State, ended: Sequence[Ending], now: Instant) -> None:
    """Removes jobs that retention does not keep: at most `BATCH` older ones, the rest when the next job ends."""
    drop(tx, row, [Removal(job.seq, job.id, state, job.extras) for job in ended if job.keep.removes_at_once], now)
    counts = [job.keep.count for job in ended if job.keep.count]
    if counts and row.counts[state] > min(counts):
        drop(tx, row, _beyond(tx, row, state, min(counts)), now)


def _beyond(tx: Transaction, row: QueueRow, state: State, count: int) -> list[Removal]:
    """Returns the oldest jobs beyond this count, without those that are kept for ever."""
    values = {"queue": row.id, "state": state, "count": count, "limit": BATCH}
    if tx.get(_REMOVE["has_kept"], values):
        return removals(tx.get(_REMOVE["oldest_beyond"], values))
    values["limit"] = min(row.counts[state] - count, BATCH)
    return removals(tx.get(_REMOVE["oldest_counted"], values))
