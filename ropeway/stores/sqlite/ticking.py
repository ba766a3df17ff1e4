"""tick: what time brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ...job.events import EVENTS_KEPT
from ...job.instants import Instant
from ...job.options import readable_options
from ...job.retention import KEEP_FAILED
from ...job.rules import is_given_up, stall_reason
from ...store.values import BATCH, StallRules, Ticked
from .moving import apply_retention, leaving, promote_due, remove_all
from .places import leave
from .reading import reader
from .settling import remember_failures
from .statements import statements
from .transaction import Detail, QueueRow, Transaction, as_json

_SQL: Final = statements("tick")
METRICS_KEPT: Final = 14 * 86_400_000
REVOKED_KEPT: Final = 60_000
EVENTS_TRIMMED: Final = 20 * BATCH


class Late(msgspec.Struct, array_like=True):
    """An active job whose lock ran out."""

    seq: int
    id: str
    worker: str | None
    attempts_started: int
    attempts_made: int
    stalled_count: int
    renewed_at: Instant | None
    options: str


_late: Final[Callable[[bytes], list[Late]]] = reader(list[Late])


def tick(tx: Transaction, queue: str, rules: StallRules) -> Ticked:
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    promoted = promote_due(tx, row, now)
    stalled, given_up = _recover(tx, row, rules, now)
    removed = _expire(tx, row, now)
    tx.notice_drained(row, busy)
    more = _trim(tx, row, now)
    ends = [end for end in tx.get(_SQL["next_at"], {"queue": row.id}) if end is not None]
    return Ticked(
        promoted,
        stalled,
        given_up,
        removed,
        min(ends, default=None),
        more=more or BATCH in {promoted, len(stalled) + len(given_up), removed},
        now=now,
    )


def _recover(tx: Transaction, row: QueueRow, rules: StallRules, now: Instant) -> tuple[list[str], list[str]]:
    if not row.counts["active"]:
        return [], []
    late = _late(tx.get(_SQL["stalled"], {"queue": row.id, "now": now, "limit": BATCH}))
    if not late:
        return [], []
    verdicts = [(job, _is_lost(job, rules)) for job in late]
    lost = [job for job, is_lost in verdicts if is_lost]
    kept = [job for job, is_lost in verdicts if not is_lost]
    failures = [
        (
            job.seq,
            job.attempts_started,
            job.worker,
            _reason(job, given_up=is_lost),
            "",
            readable_options(job.options).stack_traces,
        )
        for job, is_lost in verdicts
    ]
    remember_failures(tx, failures, now)
    if kept:
        _stall(tx, row, kept, rules, now)
    if lost:
        _give_up(tx, row, lost, rules, now)
    tx.wake("jobs", row)
    return [job.id for job in kept], [job.id for job in lost]


def _is_lost(job: Late, rules: StallRules) -> bool:
    return is_given_up(
        stalled_count=job.stalled_count + 1,
        attempts_made=job.attempts_made + rules.counts_as_attempt,
        attempts=readable_options(job.options).attempts,
        max_stalled_count=rules.max_stalled_count,
        on_stalled=rules.on_stalled,
        counts_as_attempt=rules.counts_as_attempt,
    )


def _stall(tx: Transaction, row: QueueRow, jobs: list[Late], rules: StallRules, now: Instant) -> None:
    used = int(rules.counts_as_attempt)
    stalled = [(job.seq, used, _reason(job, given_up=False)) for job in jobs]
    tx.run(_SQL["stall"], {"stalled": as_json(stalled)})
    leave(tx, [(job.seq, "active") for job in jobs])
    row.move("active", "waiting", len(jobs))
    row.announce("stall", now, "waiting", [(job.id, _detail(job)) for job in jobs])


def _give_up(tx: Transaction, row: QueueRow, jobs: list[Late], rules: StallRules, now: Instant) -> None:
    used = int(rules.counts_as_attempt)
    keeps = [readable_options(job.options).keep_failed or KEEP_FAILED for job in jobs]
    reasons = [_reason(job, given_up=True) for job in jobs]
    given_up = [
        (job.seq, used, reason, keep.until(now)) for job, reason, keep in zip(jobs, reasons, keeps, strict=True)
    ]
    tx.run(_SQL["give_up"], {"now": now, "given_up": as_json(given_up)})
    leave(tx, [(job.seq, "active") for job in jobs])
    row.move("active", "failed", len(jobs))
    details = [(job.id, {**(_detail(job) or {}), "reason": reason}) for job, reason in zip(jobs, reasons, strict=True)]
    row.announce("give up", now, "failed", details)
    kept = [(job.seq, job.id, keep) for job, keep in zip(jobs, keeps, strict=True)]
    apply_retention(tx, row, "failed", kept, now)


def _detail(job: Late) -> Detail:
    return {"worker": job.worker, "stalled_count": job.stalled_count + 1}


def _reason(job: Late, *, given_up: bool) -> str:
    return stall_reason(job.worker, job.renewed_at, given_up=given_up)


def _expire(tx: Transaction, row: QueueRow, now: Instant) -> int:
    expired = leaving(tx.get(_SQL["expired"], {"queue": row.id, "now": now, "limit": BATCH}))
    remove_all(tx, row, expired, now)
    return len(expired)


def _trim(tx: Transaction, row: QueueRow, now: Instant) -> bool:
    """Whether there is more to trim."""
    revoked = {"queue": row.id, "before": now - REVOKED_KEPT, "limit": BATCH}
    _trim_metrics(tx, row, now - METRICS_KEPT)
    trimmed = {
        tx.change(_SQL["trim_revoked"], revoked),
        tx.change(_SQL["trim_records"], {"now": now, "limit": BATCH}),
    }
    return _trim_events(tx, row) or BATCH in trimmed


def _trim_metrics(tx: Transaction, row: QueueRow, before: Instant) -> None:
    tx.run(_SQL["trim_metrics"], {"queue": row.id, "before": before})
    if row.newest_minute and row.newest_minute["minute"] < before:
        row.newest_minute = None
        row.is_changed = True


def _trim_events(tx: Transaction, row: QueueRow) -> bool:
    # An entry's number is that of its last event, so the newest entry is always above this one.
    last = row.first_event + row.events - EVENTS_KEPT
    oldest = tx.get(_SQL["oldest_event"], {"first": row.first_event}) if row.events > EVENTS_KEPT else None
    if oldest is None or oldest > last:
        return False
    # By events, and not only by entries: one entry may have a thousand of them.
    reached = min(last, oldest + EVENTS_TRIMMED)
    trimmed = tx.change(_SQL["trim_events"], {"first": oldest, "last": reached, "limit": BATCH})
    if row.events_from is not None:
        row.events_from = None
        row.is_changed = True
    return reached < last or trimmed == BATCH
