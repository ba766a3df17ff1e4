"""claim: the most urgent waiting jobs for one worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw
from msgspec.structs import replace

from ...job.instants import Instant
from ...job.record import JobRecord
from ...store.commands import Claim
from ...store.values import BATCH, Claimed
from .deadlines import remove_deadlines
from .decoding import decoder
from .expiring import expire_due
from .locating import records, records_of
from .promoting import promote_due
from .statements import statements
from .transaction import Arrival, QueueRow, Transaction, as_json
from .verbs import writes

_SQL: Final = statements("claim")
_seqs: Final[Callable[[bytes], list[int]]] = decoder(list[int])
_names: Final[Callable[[bytes], list[str]]] = decoder(list[str])


@writes(Claim, must_last=False, takes_whole=True)
def claim(tx: Transaction, request: Claim) -> Claimed:
    row = tx.queue(request.queue)
    busy = row.busy
    claimed = claim_jobs(tx, row, request)
    # Jobs may have expired.
    tx.notice_drained(row, busy)
    return claimed


def claim_jobs(tx: Transaction, row: QueueRow, request: Claim) -> Claimed:
    """The verb without the notice that the queue is drained."""
    now = tx.now()
    promote_due(tx, row, now)
    jobs = _held(tx, row, request) if request.repeat else []
    if not jobs:
        if expire_due(tx, row, now) == BATCH:
            # There may be more, which must not be started.
            return Claimed([], now, now)
        jobs = _take(tx, row, request, now)
    again_at = None
    if len(jobs) < request.limit and row.counts["delayed"]:
        again_at = tx.get(_SQL["next_due"], {"queue": row.id})
    return Claimed(jobs, now, again_at)


def serve(tx: Transaction, request: Claim, parked_at: float) -> Claimed:
    """Executes a parked claim."""
    waited = int((time.monotonic() - parked_at) * 1000)
    return replace(claim(tx, request), waited=waited)


def _take(tx: Transaction, row: QueueRow, request: Claim, now: Instant) -> list[JobRecord]:
    limit = min(request.limit, row.counts["waiting"])
    if row.max_active is not None:
        limit = min(limit, row.max_active - row.counts["active"])
    if row.paused or limit <= 0:
        return []
    values: dict[str, Any] = {
        "queue": row.id,
        "queue_name": row.name,
        "token": request.token,
        "worker": request.worker,
        "now": now,
        "lock_until": now + request.lock,
        "alone": not request.isolates,
    }
    if tx.arrival is not None and tx.arrival.job.queue == row.name and row.counts["waiting"] == 1:
        jobs = _take_arrival(tx, row, request, values, tx.arrival)
    else:
        tx.flush_arrival()
        jobs = _take_waiting(tx, row, request, values, limit)
        if row.first_deadline is not None:
            remove_deadlines(tx, row, [abs(job.order) for job in jobs if job.extras is not None])
    if jobs:
        row.move("waiting", "active", len(jobs))
        tx.remember_claimed(row, ((job.id, abs(job.order)) for job in jobs))
        row.announce("claim", now, "active", [(job.id, None) for job in jobs], {"worker": request.worker})
    return jobs


def _take_arrival(
    tx: Transaction, row: QueueRow, request: Claim, values: dict[str, Any], arrival: Arrival
) -> list[JobRecord]:
    """Claims the arrival, which is the queue's only job and was not yet inserted into `waiting`."""
    job, added = arrival
    if (request.names is not None and job.name not in request.names) or job.name in row.paused_names:
        return []
    tx.arrival = None
    tx.run(_SQL["start_new"], {**added, **values})
    return [
        JobRecord(
            job.queue,
            job.id,
            job.name,
            job.data,
            job.options,
            "active",
            job.priority,
            added["ord"],
            added["now"],
            attempts_started=1,
            token=request.token,
            worker=request.worker,
            started_at=values["now"],
            renewed_at=values["now"],
            lock_until=values["lock_until"],
            tags=job.tags,
            parents=job.parents,
        )
    ]


def _take_waiting(
    tx: Transaction, row: QueueRow, request: Claim, values: dict[str, Any], limit: int
) -> list[JobRecord]:
    if request.names is not None or row.paused_names:
        values["names"] = as_json(_allowed(tx, row, request))
        values["limit"] = limit
        # Most workers handle all that comes: then the names need not be looked at one by one.
        is_picky = bool(tx.get(_SQL["others_first"], values))
    else:
        is_picky = False
    return _choose_and_start(tx, values, limit, is_picky=is_picky)


def _choose_and_start(tx: Transaction, values: dict[str, Any], limit: int, *, is_picky: bool) -> list[JobRecord]:
    """Claims the most urgent jobs, in several portions if their data does not fit into one answer of SQLite."""
    jobs: list[JobRecord] = []
    portion = limit
    while len(jobs) < limit:
        values["limit"] = min(portion, limit - len(jobs))
        try:
            chosen = records(tx.get(_SQL["choose_named" if is_picky else "choose"], values))
        except apsw.TooBigError:
            if portion == 1:
                raise
            portion //= 2
            continue
        if chosen:
            _start(tx, values, chosen, is_picky=is_picky)
            jobs += chosen
        if len(chosen) < values["limit"]:
            break
    return jobs


def _start(tx: Transaction, values: dict[str, Any], chosen: Sequence[JobRecord], *, is_picky: bool) -> None:
    if is_picky:
        values["keys"] = as_json([(job.priority, job.order) for job in chosen])
        tx.run(_SQL["start_named"], values)
        tx.run(_SQL["leave_named"], values)
    else:
        values["priority"], values["ord"] = chosen[-1].priority, chosen[-1].order
        tx.run(_SQL["start"], values)
        tx.run(_SQL["leave"], values)


def _allowed(tx: Transaction, row: QueueRow, request: Claim) -> list[str]:
    names = request.names
    if names is None:
        names = tuple(_names(tx.get(_SQL["names_waiting"], {"queue": row.id})))
    return [name for name in dict.fromkeys(names) if name not in row.paused_names]


def _held(tx: Transaction, row: QueueRow, request: Claim) -> list[JobRecord]:
    seqs = tx.get(_SQL["held"], {"queue": row.id, "token": request.token})
    return records_of(tx, row, _seqs(seqs), with_marks=True)
