"""Makes jobs final, and removes them, a batch at a time; `ending.py` does that with what follows for other jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from ...job.codec import JsonText
from ...job.follow_ups import follow_ups_of
from ...job.instants import Instant
from ...job.moves import MOVES, MoveName
from ...job.options import StoredOptions
from ...job.record import NewJob
from ...job.retention import KEEP_FAILED, Retention
from ...job.states import FINAL, State
from ...store.values import BATCH, Why
from .deadlines import remove_deadlines
from .decoding import decoder
from .families import News, news_of
from .held_keys import free_keys
from .locating import LocatedJob, delete_state_rows, grouped, records_of
from .placeholders import (
    HAS_CHILDREN,
    HAS_DEAD_LETTER,
    HAS_DEADLINE,
    HAS_KEY,
    HAS_MARKS,
    HAS_PARENTS,
    HAS_TAGS,
    HAS_WEBHOOK,
)
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
    has: int = 0


class Removal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A job that is removed."""

    seq: int
    id: str
    state: State
    has: int = 0
    token: str | None = None
    """Token of a worker that still runs it; it is revoked."""


removals: Final[Callable[[bytes], list[Removal]]] = decoder(list[Removal])


class Aftermath(NamedTuple):
    """What the end or the removal of jobs leaves to do, once all of a call have ended."""

    news: Sequence[News] = ()
    """What to tell parents."""
    follow_ups: Sequence[NewJob] = ()
    """Letters to add."""
    followers: Sequence[str] = ()
    """Ids of jobs that waited for the end of these by a dedupe key. They go on, unless they end in the same call."""


NOTHING: Final = Aftermath()


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
) -> Aftermath:
    """Makes jobs final by one move, and announces it.

    `attempts` and `stalls` are added to those of each job; `detail` is about all of them.
    """
    [state] = MOVES[move].targets
    has = _all_bits(jobs)
    followers: Sequence[str] = ()
    if has & HAS_KEY:
        followers = free_keys(tx, row, [(job.seq, job.id, True) for job in jobs if job.has & HAS_KEY])
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
    if not has:
        return NOTHING
    if has & HAS_DEADLINE:
        remove_deadlines(tx, row, [job.seq for job in jobs if job.has & HAS_DEADLINE])
    told = [(job.seq, job.id, job.reason, job.result) for job in jobs if job.has & HAS_PARENTS]
    news = news_of(tx, row, move, told) if told else ()
    writes = HAS_WEBHOOK | HAS_DEAD_LETTER if state == "failed" else HAS_WEBHOOK
    writers = [job.seq for job in jobs if job.has & writes] if has & writes else []
    return Aftermath(news, _follow_ups(tx, row, writers, now) if writers else (), followers)


def _all_bits(jobs: Sequence[Ending] | Sequence[Removal]) -> int:
    """What any of the jobs has."""
    bits = 0
    for job in jobs:
        bits |= job.has
    return bits


def _follow_ups(tx: Transaction, row: QueueRow, seqs: Sequence[int], now: Instant) -> list[NewJob]:
    return [
        follow_up
        for job in records_of(tx, row, seqs)
        if job.extras is not None
        for follow_up in follow_ups_of(job, job.extras, now)
    ]


def drop(tx: Transaction, row: QueueRow, jobs: Sequence[Removal], now: Instant, *, quietly: bool = False) -> Aftermath:
    """Removes jobs with everything about them, and announces it unless that is to be done quietly."""
    if not jobs:
        return NOTHING
    has = _all_bits(jobs)
    followers: Sequence[str] = ()
    if has & HAS_KEY:
        followers = free_keys(tx, row, [(job.seq, job.id, job.state in FINAL) for job in jobs if job.has & HAS_KEY])
    told = [(job.seq, job.id, None, None) for job in jobs if job.has & HAS_PARENTS and job.state not in FINAL]
    news = news_of(tx, row, "remove", told) if told else ()
    for state, group in grouped(jobs, _state).items():
        delete_state_rows(tx, state, [job.seq for job in group])
        row.move(state, None, len(group))
        if state == "active":
            _release(tx, row, [job.id for job in group])
            _revoke(tx, row, [(job.id, job.token) for job in group], "removed", now)
    _delete(tx, row, jobs, has)
    if not quietly:
        row.announce("remove", now, None, [(job.id, {"prev": job.state}) for job in jobs])
    return Aftermath(news, followers=followers)


def _delete(tx: Transaction, row: QueueRow, jobs: Sequence[Removal], has: int) -> None:
    """Deletes jobs that are in no state any more, with all that any of them `has`."""
    seqs = {"seqs": as_json([job.seq for job in jobs])}
    if has & HAS_CHILDREN:
        tx.run(_REMOVE["links"], seqs)
        tx.run(_REMOVE["leave_families"], seqs)
        tx.run(_REMOVE["families"], seqs)
    tx.run(_REMOVE["jobs"], seqs)
    if has & HAS_TAGS:
        tx.run(_REMOVE["tags"], seqs)
    if has & HAS_MARKS:
        tx.run(_REMOVE["marks"], seqs)
    if has & HAS_DEADLINE:
        remove_deadlines(tx, row, [job.seq for job in jobs if job.has & HAS_DEADLINE])
    for table, has_rows in zip(("failures", "log"), tx.get(_REMOVE["has_more"]), strict=True):
        if has_rows:
            tx.run(_REMOVE[table], seqs)


def cancellation(job: LocatedJob, state: State, options: StoredOptions, reason: str | None) -> Ending:
    """The end of a job that is cancelled in a state."""
    token = job.token if state == "active" else None
    return Ending(job.seq, job.id, state, keep_of_failed(options), {"prev": state}, reason, None, token, job.has)


def keep_of_failed(options: StoredOptions) -> Retention:
    """Retention of a job that ends without a worker's rule."""
    return options.keep_failed or KEEP_FAILED


def _by_source(sources: Sequence[State], jobs: Sequence[Ending]) -> Mapping[State, Sequence[Ending]]:
    return {sources[0]: jobs} if len(sources) == 1 else grouped(jobs, _source)


def _write(tx: Transaction, source: State, jobs: Sequence[Ending], values: dict[str, Any], now: Instant) -> None:
    """Inserts jobs of one source into `finished`: a statement per expiry, another for those with a reason or result."""
    alike: defaultdict[Instant | None, list[int]] = defaultdict(list)
    others: defaultdict[Instant | None, list[tuple[int, str | None, JsonText | None]]] = defaultdict(list)
    keep: Retention | None = None
    expires_at: Instant | None = None
    for job in jobs:
        if job.keep is not keep:
            # Most jobs of a batch share one.
            keep = job.keep
            expires_at = keep.until(now)
        if job.reason is None and job.result is None and source == "active":
            alike[expires_at].append(job.seq)
        else:
            others[expires_at].append((job.seq, job.reason, job.result))
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
    keeps = {id(job.keep): job.keep for job in ended}.values()
    if any(keep.removes_at_once for keep in keeps):
        drop(tx, row, [Removal(job.seq, job.id, state, job.has) for job in ended if job.keep.removes_at_once], now)
    counts = [keep.count for keep in keeps if keep.count]
    if counts and row.counts[state] > min(counts):
        drop(tx, row, _beyond(tx, row, state, min(counts)), now)


def _beyond(tx: Transaction, row: QueueRow, state: State, count: int) -> list[Removal]:
    """Returns the oldest jobs beyond this count, without those that are kept for ever."""
    values = {"queue": row.id, "state": state, "count": count, "limit": BATCH}
    if tx.get(_REMOVE["has_kept"], values):
        return removals(tx.get(_REMOVE["oldest_beyond"], values))
    values["limit"] = min(row.counts[state] - count, BATCH)
    return removals(tx.get(_REMOVE["oldest_counted"], values))
