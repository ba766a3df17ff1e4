"""tick: promotes, recovers, expires, removes and trims, and finds due schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from ...job.events import EVENTS_KEPT
from ...job.instants import Instant
from ...job.options import readable_options
from ...job.stalls import GIVEN_UP, StallVerdict, judge_stall, stall_reason
from ...store.commands import Tick
from ...store.values import BATCH, StallRules, Ticked
from .deadlines import correct_first_deadline
from .decoding import decoder
from .ending import Ends, remove
from .expiring import expire_due
from .finishing import Ending, keep_of_failed, removals
from .locating import delete_state_rows
from .promoting import promote_due
from .schedules import due_schedules
from .settling import remember_failures
from .staging import apply_stages, next_stages_at
from .statements import statements
from .transaction import Detail, QueueRow, Transaction, as_json
from .verbs import writes

_SQL: Final = statements("tick")
_FREE_OLD_KEYS: Final = statements("dedupe")["free_old"]
METRICS_KEPT: Final = 14 * 86_400_000
REVOKED_KEPT: Final = 60_000
EVENTS_TRIMMED: Final = 20 * BATCH


class Stalled(msgspec.Struct, array_like=True):
    """An active job whose lock ran out."""

    seq: int
    id: str
    worker: str | None
    attempts_started: int
    attempts_made: int
    stalled_count: int
    renewed_at: Instant | None
    alone: int
    options: str
    has: int


_stalled: Final[Callable[[bytes], list[Stalled]]] = decoder(list[Stalled])


@writes(Tick, must_last=False, is_thorough=True)
def tick(tx: Transaction, queue: str, rules: StallRules) -> Ticked:
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    promoted = promote_due(tx, row, now)
    ends = Ends(tx, row, now)
    stalled, given_up = _recover(tx, row, rules, now, ends)
    expired = expire_due(tx, row, now, ends)
    # Only now: a parent that has expired does not fail by the child that was given up.
    ends.conclude()
    removed = _remove_old(tx, row, now)
    stale, deleted, has_more = apply_stages(tx, row, now)
    tx.notice_drained(row, busy)
    more = _trim(tx, row, now)
    correct_first_deadline(tx, row)
    next_at = [row.first_deadline, *tx.get(_SQL["next_at"], {"queue": row.id}), *next_stages_at(tx, row)]
    return Ticked(
        promoted,
        stalled,
        given_up,
        removed + deleted,
        min((at for at in next_at if at is not None), default=None),
        more=more or has_more or BATCH in {promoted, len(stalled) + len(given_up), expired, removed},
        now=now,
        expired=expired,
        schedules=due_schedules(tx, row, now),
        stale=stale,
    )


def _recover(
    tx: Transaction, row: QueueRow, rules: StallRules, now: Instant, ends: Ends
) -> tuple[list[str], list[str]]:
    if not row.counts["active"]:
        return [], []
    late = _stalled(tx.get(_SQL["stalled"], {"queue": row.id, "now": now, "limit": BATCH}))
    if not late:
        return [], []
    stalls = [_judged(job, rules) for job in late]
    lost = [stall for stall in stalls if stall.verdict in GIVEN_UP]
    kept = [stall for stall in stalls if stall.verdict not in GIVEN_UP]
    failures = [
        (job.seq, job.attempts_started, job.worker, reason, "", readable_options(job.options).stack_traces)
        for job, _, reason, _ in stalls
    ]
    remember_failures(tx, failures, now)
    if kept:
        _stall(tx, row, kept, now)
    if lost:
        _give_up(ends, lost, attempts=int(rules.counts_as_attempt))
    tx.wake("jobs", row)
    return [stall.job.id for stall in kept], [stall.job.id for stall in lost]


class Stall(NamedTuple):
    job: Stalled
    verdict: StallVerdict
    reason: str
    uses: int
    """Attempts that the stall uses."""

    @property
    def detail(self) -> dict[str, Any]:
        return {"worker": self.job.worker, "stalled_count": self.job.stalled_count + 1}


def _judged(job: Stalled, rules: StallRules) -> Stall:
    verdict = judge_stall(
        stalled_count=job.stalled_count,
        attempts_made=job.attempts_made,
        attempts=readable_options(job.options).attempts,
        is_alone=bool(job.alone),
        max_stalled_count=rules.max_stalled_count,
        on_stalled=rules.on_stalled,
        counts_as_attempt=rules.counts_as_attempt,
    )
    uses = int(rules.counts_as_attempt and verdict != "spared")
    return Stall(job, verdict, stall_reason(verdict, job.worker, job.renewed_at, rules.ends), uses)


def _stall(tx: Transaction, row: QueueRow, stalls: list[Stall], now: Instant) -> None:
    stalled = [(stall.job.seq, stall.uses, stall.reason) for stall in stalls]
    tx.run(_SQL["stall"], {"stalled": as_json(stalled)})
    delete_state_rows(tx, "active", [stall.job.seq for stall in stalls])
    row.move("active", "waiting", len(stalls))
    row.announce("stall", now, "waiting", [(stall.job.id, stall.detail) for stall in stalls])


def _give_up(ends: Ends, stalls: list[Stall], *, attempts: int) -> None:
    ended = [
        Ending(
            stall.job.seq,
            stall.job.id,
            "active",
            keep_of_failed(readable_options(stall.job.options)),
            _end_detail(stall),
            stall.reason,
            has=stall.job.has,
        )
        for stall in stalls
    ]
    ends.end("give up", ended, attempts=attempts, stalls=1)


def _end_detail(stall: Stall) -> Detail:
    detail = {**stall.detail, "reason": stall.reason}
    return {**detail, "exhausted": True} if stall.verdict == "last attempt" else detail


def _remove_old(tx: Transaction, row: QueueRow, now: Instant) -> int:
    """Removes jobs whose retention has ended."""
    old = removals(tx.get(_SQL["old"], {"queue": row.id, "now": now, "limit": BATCH}))
    remove(tx, row, old, now)
    return len(old)


def _trim(tx: Transaction, row: QueueRow, now: Instant) -> bool:
    """Trims streams, metrics, records and dedupe keys; True if there is more to trim."""
    revoked = {"queue": row.id, "before": now - REVOKED_KEPT, "limit": BATCH}
    _trim_metrics(tx, row, now - METRICS_KEPT)
    trimmed = {
        tx.change(_SQL["trim_revoked"], revoked),
        tx.change(_SQL["trim_records"], {"now": now, "limit": BATCH}),
        tx.change(_FREE_OLD_KEYS, {"queue": row.id, "now": now, "limit": BATCH}),
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
