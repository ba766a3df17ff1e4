"""get, count and the other queries, which change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import apsw

from ...job.instants import Instant
from ...job.record import JobRecord
from ...store import commands
from ...store.cursors import BEYOND_ALL
from ...store.values import Counts, FailedAttempt, History, LogLine, LogPage, Metric, Settings
from .decoding import decoder
from .locating import locate, records
from .statements import statements
from .transaction import Transaction, as_json
from .verbs import reads

_LOOK: Final = statements("look")
_QUEUE: Final = statements("queue")
_metrics: Final[Callable[[bytes], list[Metric]]] = decoder(list[Metric])
_failures: Final[Callable[[bytes], list[FailedAttempt]]] = decoder(list[FailedAttempt])
_log: Final[Callable[[bytes], list[LogLine]]] = decoder(list[LogLine])
_lines: Final[Callable[[bytes], list[tuple[int, Instant, str]]]] = decoder(list[tuple[int, Instant, str]])
_walked: Final[Callable[[bytes], list[tuple[int, int]]]] = decoder(list[tuple[int, int]])
_names: Final[Callable[[bytes], list[str]]] = decoder(list[str])

COUNTED_AT_FIRST: Final = 1_000
"""Jobs of each priority that are counted at first; of those with more, ten times as many in each further step."""


@reads(commands.Get)
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


@reads(commands.Count)
def count(tx: Transaction, queue: str) -> Counts:
    return tx.queue(queue).counts.copy()


@reads(commands.CountWaiting)
def count_waiting(tx: Transaction, queue: str, priorities: Sequence[int]) -> list[int]:
    # SQLite counts by walking, and most jobs may wait with the same priority: that one has what the others leave.
    row = tx.queue(queue)
    counted = dict.fromkeys(priorities, 0)
    rest = dict.fromkeys(counted, -BEYOND_ALL)
    limit = COUNTED_AT_FIRST
    while rest:
        asked = {"queue": row.id, "asked": as_json(list(rest.items())), "limit": limit}
        walked = list(zip(rest, _walked(tx.get(_LOOK["count_waiting"], asked)), strict=True))
        for priority, (number, _) in walked:
            counted[priority] += number
        rest = {priority: last for priority, (number, last) in walked if number == limit}
        if len(rest) == 1:
            [priority] = rest
            most = counted[priority]
            others: int = tx.get(_LOOK["count_others"], {"queue": row.id, "priority": priority, "limit": most})
            if others < most:
                counted[priority] = row.counts["waiting"] - others
                break
        limit *= 10
    return [counted[priority] for priority in priorities]


@reads(commands.ReadMetrics)
def metrics(tx: Transaction, queue: str, since: Instant) -> list[Metric]:
    row = tx.queue(queue)
    found = _metrics(tx.get(_LOOK["metrics"], {"queue": row.id, "since": since}))
    newest = row.newest_minute
    return [*found, Metric(**newest)] if newest and newest["minute"] >= since else found


@reads(commands.ReadHistory)
def history(tx: Transaction, queue: str, id: str) -> History | None:
    [job] = locate(tx, tx.queue(queue), [id])
    if job.state is None:
        return None
    failures = _failures(tx.get(_LOOK["failures"], {"seq": job.seq}))
    log = _log(tx.get(_LOOK["log"], {"seq": job.seq}))
    return History(failures, log, job.logged - len(log))


@reads(commands.ReadLog)
def log(tx: Transaction, queue: str, id: str, after: int | None, limit: int, newest_first: bool) -> LogPage | None:
    [job] = locate(tx, tx.queue(queue), [id])
    if job.state is None:
        return None
    newest = job.logged
    end = newest + 1 if newest_first else 0
    start = end if after is None else max(0, min(after, newest + 1))
    limit = max(0, min(limit, newest))
    statement = "log_reversed_from" if newest_first else "log_from"
    # One more than fits says whether there is another page.
    found = _lines(tx.get(_LOOK[statement], {"seq": job.seq, "after": start, "limit": limit + 1}))
    page = found[:limit]
    last = page[-1][0] if page and len(found) > limit else None
    return LogPage([LogLine(at, text) for _, at, text in page], newest, last)


@reads(commands.ReadSettings, sees_inbox=False)
def settings(tx: Transaction, queue: str) -> Settings:
    return tx.queue(queue).settings


@reads(commands.ListQueues)
def queues(tx: Transaction) -> list[str]:
    return _names(tx.get(_QUEUE["names"]))


@reads(commands.ReadClock, sees_inbox=False)
def clock(tx: Transaction) -> Instant:
    tx.saw(tx.get(_QUEUE["newest_instant"]) or 0)
    return tx.now()


def data_version(tx: Transaction) -> int:
    """Returns a number that changes when another connection commits; see `wake.FileListener`."""
    return int(tx.get("PRAGMA data_version"))
