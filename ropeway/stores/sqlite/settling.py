"""settle: how attempts ended, and the next jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from ...job.failure import UNKNOWN_REASON, Failure
from ...job.instants import LAST_INSTANT, Instant
from ...job.outcomes import Outcome, SettlingMove
from ...job.record import NewJob
from ...job.rules import is_repeat
from ...job.states import State
from ...store.commands import Claim
from ...store.values import MISSING, Answer, Settled
from .adding import add
from .claiming import claim
from .moving import apply_retention
from .places import Place, find_places, leave
from .statements import statements
from .transaction import Detail, QueueRow, Transaction, as_json

_SQL: Final = statements("settle")
_DONE: Final = Answer("done", "active")
_NO_FAILURE: Final = Failure(UNKNOWN_REASON)

Ended: TypeAlias = list[tuple[Place, Outcome]]
"""Outcomes whose token was the current one, with the places they end."""


def settle(tx: Transaction, queue: str, outcomes: Sequence[Outcome], then: Claim | None) -> Settled:
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    answers, ended, lost, adds = _fence(outcomes, find_places(tx, row, [outcome.id for outcome in outcomes]))
    for move, group in ended.items():
        _ENDINGS[move](tx, row, group, now)
    for move, ids in lost.items():
        row.announce("lock-lost", now, jobs=[(id, {"move": move}) for id in ids])
    if adds:
        add(tx, adds)
    if row.max_active is not None and ended:
        tx.wake("jobs", row)
    claimed = claim(tx, then) if then else None
    tx.notice_drained(row, busy)
    return Settled(answers, claimed)


def _fence(
    outcomes: Sequence[Outcome], places: Sequence[Place]
) -> tuple[list[Answer], dict[SettlingMove, Ended], dict[SettlingMove, list[str]], list[list[NewJob]]]:
    answers: list[Answer] = []
    ended: defaultdict[SettlingMove, Ended] = defaultdict(list)
    lost: defaultdict[SettlingMove, list[str]] = defaultdict(list)
    adds: list[list[NewJob]] = []
    for outcome, place in zip(outcomes, places, strict=True):
        state = place.state
        if state is None:
            answers.append(MISSING)
        elif state == "active" and place.token == outcome.token:
            answers.append(_DONE)
            ended[outcome.move].append((place, outcome))
            place.state = _target(outcome)
            if outcome.adds:
                # Each by itself: one whose id exists keeps none of the others from being added.
                adds += [[job] for job in outcome.adds]
        elif is_repeat(outcome.move, state, same_token=place.token == outcome.token):
            answers.append(Answer("done", state))
        else:
            answers.append(Answer("lost", state))
            lost[outcome.move].append(outcome.id)
    return answers, ended, lost, adds


def _target(outcome: Outcome) -> State:
    match outcome.move:
        case "complete":
            return "completed"
        case "fail":
            return "failed"
        case "hand back":
            return "waiting"
        case _:
            return "delayed" if outcome.delay > 0 else "waiting"


def _complete(tx: Transaction, row: QueueRow, group: Ended, now: Instant) -> None:
    by_expiry: defaultdict[Instant | None, list[tuple[int, str | None]]] = defaultdict(list)
    jobs: list[tuple[str, Detail]] = []
    for place, outcome in group:
        result = outcome.result
        by_expiry[outcome.keep.until(now)].append((place.seq, result))
        # Raw: the result's text goes into the entry as it is, as a value.
        has_value = result is not None and result != "null"
        jobs.append((outcome.id, {"result": msgspec.Raw(result or "")} if has_value else None))
    for expires_at, completed in by_expiry.items():
        if all(result is None for _, result in completed):
            seqs = as_json([seq for seq, _ in completed])
            tx.run(_SQL["complete"], {"seqs": seqs, "now": now, "expires_at": expires_at})
        else:
            values = {"completed": as_json(completed), "now": now, "expires_at": expires_at}
            tx.run(_SQL["complete_with_results"], values)
    _leave(tx, row, group)
    row.move("active", "completed", len(group))
    row.announce("complete", now, "completed", jobs)
    apply_retention(tx, row, "completed", [(place.seq, place.id, outcome.keep) for place, outcome in group], now)


def _fail(tx: Transaction, row: QueueRow, group: Ended, now: Instant) -> None:
    jobs: list[tuple[str, Detail]] = []
    failed = []
    for place, outcome in group:
        reason = (outcome.failure or _NO_FAILURE).reason
        failed.append((place.seq, outcome.keep.until(now), reason))
        detail = {"reason": reason, "attempt": place.attempts_started}
        jobs.append((place.id, {**detail, "exhausted": True} if outcome.exhausted else detail))
    tx.run(_SQL["fail"], {"now": now, "failed": as_json(failed)})
    _leave(tx, row, group)
    _remember_failures(tx, group, now)
    row.move("active", "failed", len(group))
    row.announce("fail", now, "failed", jobs)
    apply_retention(tx, row, "failed", [(place.seq, place.id, outcome.keep) for place, outcome in group], now)


def _send_back(tx: Transaction, row: QueueRow, group: Ended, now: Instant) -> None:
    """Retries, postponements and jobs handed back: all of one move."""
    move = group[0][1].move
    is_retry = move == "retry"
    if move != "hand back":
        _go_behind(tx, [place for place, outcome in group if _target(outcome) == "waiting"])
    back: dict[State, list[tuple[int, Instant | None, int, str | None]]] = {"waiting": [], "delayed": []}
    jobs: dict[State, list[tuple[str, Detail]]] = {"waiting": [], "delayed": []}
    for place, outcome in group:
        target = _target(outcome)
        due_at = min(now + outcome.delay, LAST_INSTANT) if target == "delayed" else None
        reason = (outcome.failure or _NO_FAILURE).reason if is_retry else None
        back[target].append((place.seq, due_at, int(is_retry), reason))
        detail: Detail = None if due_at is None else {"due_at": due_at}
        if is_retry:
            detail = {"reason": reason, "attempt": place.attempts_started, "delay": outcome.delay}
        jobs[target].append((place.id, detail))
    if back["waiting"]:
        tx.run(_SQL["wait"], {"back": as_json(back["waiting"])})
    if back["delayed"]:
        tx.run(_SQL["delay"], {"back": as_json(back["delayed"])})
    _leave(tx, row, group)
    if is_retry:
        _remember_failures(tx, group, now)
    for target, moved in jobs.items():
        if moved:
            row.move("active", target, len(moved))
            row.announce(move, now, target, moved)
    tx.wake("jobs", row)


def _go_behind(tx: Transaction, places: Sequence[Place]) -> None:
    """Gives jobs new sequence numbers, as if they were added now, so that they wait behind all of their priority."""
    if not places:
        return
    first = tx.take_seqs(len(places))
    renumbered = {"renumbered": as_json([(place.seq, first + n) for n, place in enumerate(places)])}
    for table in ("job", "active", "failure", "log", "tag"):
        tx.run(_SQL[f"renumber_{table}"], renumbered)
    for n, place in enumerate(places):
        place.seq = first + n


def _leave(tx: Transaction, row: QueueRow, group: Ended) -> None:
    leave(tx, [(place.seq, "active") for place, _ in group])
    tx.forget_claimed(row, (place.id for place, _ in group))


def _remember_failures(tx: Transaction, group: Ended, now: Instant) -> None:
    remember_failures(
        tx,
        [
            (place.seq, place.attempts_started, place.worker, failure.reason, failure.trace, outcome.stack_traces)
            for place, outcome in group
            for failure in (outcome.failure or _NO_FAILURE,)
        ],
        now,
    )


def remember_failures(
    tx: Transaction, failures: Sequence[tuple[int, int, str | None, str, str, int]], now: Instant
) -> None:
    """Takes sequence number, attempt, worker, reason, trace and how many failures each job keeps."""
    encoded = as_json(failures)
    tx.run(_SQL["remember_failures"], {"now": now, "failures": encoded})
    tx.run(_SQL["trim_failures"], {"failures": encoded})


_ENDINGS: Final[dict[SettlingMove, Callable[[Transaction, QueueRow, Ended, Instant], None]]] = {
    "complete": _complete,
    "fail": _fail,
    "retry": _send_back,
    "postpone": _send_back,
    "hand back": _send_back,
}
