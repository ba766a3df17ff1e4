"""settle: how attempts ended, and the next jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ...job.failure import UNKNOWN_REASON, Failure
from ...job.instants import LAST_INSTANT, Instant
from ...job.marks import Marking
from ...job.outcomes import Outcome, SettlingMove
from ...job.record import NewJob
from ...job.rules import is_repeat
from ...job.states import State
from ...store.commands import Claim, Settle
from ...store.values import HELD, MISSING, Answer, Settled
from .adding import add
from .awaiting import await_children
from .claiming import claim_jobs
from .ending import Ends
from .finishing import Ending
from .locating import LocatedJob, delete_state_rows, locate
from .marking import end_waits, write_marks
from .placeholders import HAS_MARKS, HAS_TAGS
from .statements import statements
from .transaction import Detail, Transaction, as_json
from .verbs import writes

_SQL: Final = statements("settle")
_NO_FAILURE: Final = Failure(UNKNOWN_REASON)
_adds: Final = attrgetter("adds")
_awaits: Final = attrgetter("awaits")

Ended: TypeAlias = list[tuple[LocatedJob, Outcome]]
"""Accepted outcomes, with their jobs."""


@writes(Settle)
def settle(tx: Transaction, queue: str, outcomes: Sequence[Outcome], then: Claim | None) -> Settled:
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    ends = Ends(tx, row, now)
    answers: list[Answer] = []
    for portion in _portions(outcomes):
        answers += _settle(ends, portion)
    ends.conclude()
    claimed = claim_jobs(tx, tx.queue(then.queue), then) if then else None
    tx.notice_drained(row, busy)
    return Settled(answers, claimed)


def _portions(outcomes: Sequence[Outcome]) -> Sequence[Sequence[Outcome]]:
    """Outcomes that are settled together: each by itself if what one adds may end another's job, or find its key."""
    if len(outcomes) == 1 or not any(map(_adds, outcomes)):
        return [outcomes]
    has_extras = any(job.extras is not None for outcome in outcomes for job in outcome.adds)
    return [[outcome] for outcome in outcomes] if has_extras else [outcomes]


def _settle(ends: Ends, outcomes: Sequence[Outcome]) -> list[Answer]:
    tx, row = ends.tx, ends.row
    jobs_found = locate(tx, row, [outcome.id for outcome in outcomes])
    if any(map(_awaits, outcomes)):
        outcomes = end_waits(tx, jobs_found, outcomes)
    fenced = _fence(outcomes, jobs_found)
    if fenced.markings:
        # Those that are sent back take what they have from `job`, and the others leave the tables that say it.
        write_marks(tx, row, fenced.markings, ends.now)
    for move, group in fenced.ended.items():
        _ENDINGS[move](ends, group)
    for move, ids in fenced.lost.items():
        row.announce("lock-lost", ends.now, jobs=[(id, {"move": move}) for id in ids])
    if fenced.adds:
        ends.start_followers()
        add(tx, fenced.adds)
    return fenced.answers


class Fenced(NamedTuple):
    """Outcomes whose tokens were compared."""

    answers: list[Answer]
    ended: dict[SettlingMove, Ended]
    lost: dict[SettlingMove, list[str]]
    """Ids of jobs whose outcomes are refused."""
    adds: list[list[NewJob]]
    markings: list[tuple[LocatedJob, Marking]]


def _fence(outcomes: Sequence[Outcome], jobs_found: Sequence[LocatedJob]) -> Fenced:
    answers: list[Answer] = []
    ended: defaultdict[SettlingMove, Ended] = defaultdict(list)
    lost: defaultdict[SettlingMove, list[str]] = defaultdict(list)
    adds: list[list[NewJob]] = []
    markings: list[tuple[LocatedJob, Marking]] = []
    for outcome, job in zip(outcomes, jobs_found, strict=True):
        state = job.state
        if state is None:
            answers.append(MISSING)
        elif state == "active" and job.token == outcome.token:
            answers.append(HELD)
            ended[outcome.move].append((job, outcome))
            job.state = _target(outcome)
            if outcome.adds:
                # Each by itself: one whose id exists keeps none of the others from being added.
                adds += [[job] for job in outcome.adds]
            if outcome.marking is not None:
                markings.append((job, outcome.marking))
        elif is_repeat(outcome.move, state, same_token=job.token == outcome.token):
            answers.append(Answer("done", state))
        else:
            answers.append(Answer("lost", state))
            lost[outcome.move].append(outcome.id)
    return Fenced(answers, ended, lost, adds, markings)


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


def _complete(ends: Ends, group: Ended) -> None:
    ends.end("complete", [_completion(job, outcome) for job, outcome in group])


def _completion(job: LocatedJob, outcome: Outcome) -> Ending:
    result = outcome.result
    # Raw: the result's text goes into the entry as it is, as a value.
    detail = None if result is None or result == "null" else {"result": msgspec.Raw(result)}
    return Ending(job.seq, job.id, "active", outcome.keep, detail, None, result, has=job.has)


def _fail(ends: Ends, group: Ended) -> None:
    _remember_failures(ends.tx, group, ends.now)
    ends.end("fail", [_final_failure(job, outcome) for job, outcome in group], attempts=1)


def _final_failure(job: LocatedJob, outcome: Outcome) -> Ending:
    reason = (outcome.failure or _NO_FAILURE).reason
    detail = {"reason": reason, "attempt": job.attempts_started}
    if outcome.exhausted:
        detail["exhausted"] = True
    return Ending(job.seq, job.id, "active", outcome.keep, detail, reason, has=job.has)


def _postpone(ends: Ends, group: Ended) -> None:
    if asked := [job for job, outcome in group if outcome.awaits_children]:
        waiting = await_children(ends, asked)
        group = [(job, outcome) for job, outcome in group if job.seq not in waiting]
    if group:
        _send_back(ends, group)


def _send_back(ends: Ends, group: Ended) -> None:
    """Moves active jobs to waiting or delayed, all by one move: retry, postpone or hand back."""
    tx, row, now = ends.tx, ends.row, ends.now
    move = group[0][1].move
    is_retry = move == "retry"
    if move != "hand back":
        _go_behind(tx, [job for job, outcome in group if _target(outcome) == "waiting"])
    back: dict[State, list[tuple[int, Instant | None, int, str | None, str | None]]] = {"waiting": [], "delayed": []}
    jobs: dict[State, list[tuple[str, Detail]]] = {"waiting": [], "delayed": []}
    for job, outcome in group:
        target = _target(outcome)
        due_at = min(now + outcome.delay, LAST_INSTANT) if target == "delayed" else None
        reason = (outcome.failure or _NO_FAILURE).reason if is_retry else None
        awaits = outcome.awaits if move == "postpone" else None
        back[target].append((job.seq, due_at, int(is_retry), reason, awaits))
        detail: Detail = None if due_at is None else {"due_at": due_at}
        if is_retry:
            detail = {"reason": reason, "attempt": job.attempts_started, "delay": outcome.delay}
        jobs[target].append((job.id, detail))
    if back["waiting"]:
        tx.run(_SQL["wait"], {"back": as_json(back["waiting"])})
    if back["delayed"]:
        tx.run(_SQL["delay"], {"back": as_json(back["delayed"])})
    if is_retry:
        _remember_failures(tx, group, now)
    delete_state_rows(tx, "active", [job.seq for job, _ in group])
    tx.forget_claimed(row, (job.id for job, _ in group))
    for target, moved in jobs.items():
        if moved:
            row.move("active", target, len(moved))
            row.announce(move, now, target, moved)
    tx.wake("jobs", row)


def _go_behind(tx: Transaction, jobs_found: Sequence[LocatedJob]) -> None:
    """Gives jobs new sequence numbers, as if they were added now, so that they wait behind all of their priority."""
    if not jobs_found:
        return
    first = tx.take_seqs(len(jobs_found))
    renumbered = {"renumbered": as_json([(job.seq, first + n) for n, job in enumerate(jobs_found)])}
    for table in ("job", "active", "failure", "log"):
        tx.run(_SQL[f"renumber_{table}"], renumbered)
    if any(job.has & HAS_TAGS for job in jobs_found):
        tx.run(_SQL["renumber_tag"], renumbered)
    if any(job.has & HAS_MARKS for job in jobs_found):
        tx.run(_SQL["renumber_mark"], renumbered)
    for n, job in enumerate(jobs_found):
        job.seq = first + n


def _remember_failures(tx: Transaction, group: Ended, now: Instant) -> None:
    remember_failures(
        tx,
        [
            (job.seq, job.attempts_started, job.worker, failure.reason, failure.trace, outcome.stack_traces)
            for job, outcome in group
            for failure in (outcome.failure or _NO_FAILURE,)
        ],
        now,
    )


def remember_failures(
    tx: Transaction, failures: Sequence[tuple[int, int, str | None, str, str, int]], now: Instant
) -> None:
    """Appends failed attempts of active jobs: seq, attempt, worker, reason, trace and how many the job keeps."""
    encoded = as_json(failures)
    tx.run(_SQL["remember_failures"], {"now": now, "failures": encoded})
    tx.run(_SQL["trim_failures"], {"failures": encoded})


_ENDINGS: Final[dict[SettlingMove, Callable[[Ends, Ended], None]]] = {
    "complete": _complete,
    "fail": _fail,
    "retry": _send_back,
    "postpone": _postpone,
    "hand back": _send_back,
}
