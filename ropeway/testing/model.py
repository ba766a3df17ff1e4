"""The contract in plain Python: one queue, one dictionary of jobs, no speed and no cleverness.

It says what a store must answer. Events, wakes and more than `BATCH` jobs are left to the conformance suite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from ..job.instants import LAST_INSTANT, Instant, Milliseconds
from ..job.moves import MOVES
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.retention import KEEP_FAILED, Retention
from ..job.states import FINAL, STATES, State
from ..store.values import (
    Added,
    Answer,
    Change,
    Claimed,
    ClaimRequest,
    Cleaned,
    Edit,
    FailedAttempt,
    Lock,
    Settings,
    Settled,
    StallRules,
    Ticked,
)

STALLED = "stalled"
"""Stands for whatever a store says of a job whose lock ran out."""


class Model:
    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.failures: dict[str, list[FailedAttempt]] = {}
        self.settings = Settings()
        self.times_drained = 0
        self.alone: set[str] = set()
        """Active jobs whose attempt runs without a neighbour."""
        self._sequence = 0

    # Look

    def in_state(self, state: State) -> list[JobRecord]:
        """In the order in which `find` lists them."""
        jobs = [job for job in self.jobs.values() if job.state == state]
        return sorted(jobs, key=_ORDER.get(state, lambda job: (job.finished_at, abs(job.order))))

    def everything(self) -> list[JobRecord]:
        return [job for state in STATES for job in self.in_state(state)]

    def count(self) -> dict[State, int]:
        return {state: len(self.in_state(state)) for state in STATES}

    # Produce

    def add(self, bundles: Sequence[Sequence[NewJob]], now: Instant) -> list[list[Added]]:
        return [self._add_bundle(bundle, now) for bundle in bundles]

    def _add_bundle(self, bundle: Sequence[NewJob], now: Instant) -> list[Added]:
        known = {job.id: (job.name, job.data) for job in self.jobs.values()}
        verdicts: list[Any] = []
        for new in bundle:
            if new.id not in known:
                verdicts.append("created")
                known[new.id] = (new.name, new.data)
            else:
                verdicts.append("found" if known[new.id] == (new.name, new.data) else "conflict")
        if "conflict" in verdicts:
            verdicts = [self._beside_a_conflict(new, v) for new, v in zip(bundle, verdicts, strict=True)]
        for new, verdict in zip(bundle, verdicts, strict=True):
            if verdict == "created":
                self._create(new, now)
        return [Added(new.id, verdict) for new, verdict in zip(bundle, verdicts, strict=True)]

    def _beside_a_conflict(self, new: NewJob, verdict: str) -> str:
        return verdict if verdict == "conflict" or new.id in self.jobs else "skipped"

    def _create(self, new: NewJob, now: Instant) -> None:
        self._sequence += 1
        due_at = now + new.delay if new.delay else new.due_at
        is_delayed = due_at is not None and due_at > now
        self.failures[new.id] = []
        self.jobs[new.id] = JobRecord(
            new.queue,
            new.id,
            new.name,
            new.data,
            new.options,
            "delayed" if is_delayed else "waiting",
            new.priority,
            -self._sequence if new.lifo else self._sequence,
            created_at=now,
            due_at=due_at if is_delayed else None,
        )

    # Run

    def claim(self, request: ClaimRequest, now: Instant) -> Claimed:
        if request.repeat:
            held = [job for job in self.in_state("active") if job.token == request.token]
            if held:
                return Claimed(sorted(held, key=_ORDER["waiting"]), now)
        self._promote_due(now)
        jobs = [self._take(job, request, now) for job in self._eligible(request)[: self._room(request)]]
        delays = [job.due_at for job in self.in_state("delayed") if job.due_at is not None]
        return Claimed(jobs, now, min(delays, default=None) if len(jobs) < request.limit else None)

    def _eligible(self, request: ClaimRequest) -> list[JobRecord]:
        return [
            job
            for job in self.in_state("waiting")
            if not self.settings.paused
            and job.name not in self.settings.paused_names
            and (request.names is None or job.name in request.names)
        ]

    def _room(self, request: ClaimRequest) -> int:
        if self.settings.max_active is None:
            return request.limit
        return max(0, min(request.limit, self.settings.max_active - len(self.in_state("active"))))

    def _take(self, job: JobRecord, request: ClaimRequest, now: Instant) -> JobRecord:
        self._mark(job, alone=not request.isolates)
        return self._put(
            job,
            state="active",
            token=request.token,
            worker=request.worker,
            started_at=now,
            renewed_at=now,
            lock_until=now + request.lock,
            attempts_started=job.attempts_started + 1,
        )

    def settle(self, outcomes: Sequence[Outcome], then: ClaimRequest | None, now: Instant) -> Settled:
        before = self._is_busy()
        finished: list[tuple[str, Retention]] = []
        answers = []
        for outcome in outcomes:
            answer = self._settle_one(outcome, now)
            answers.append(answer)
            if answer == Answer("done", "active") and outcome.move in ("complete", "fail"):
                finished.append((outcome.id, outcome.keep))
        self._retain(finished)
        claimed = self.claim(then, now) if then else None
        self._note_drained(before)
        return Settled(answers, claimed)

    def _settle_one(self, outcome: Outcome, now: Instant) -> Answer:
        job = self.jobs.get(outcome.id)
        if job is None:
            return Answer("missing")
        if job.state == "active" and job.token == outcome.token:
            self._record(job, outcome, now)
            return Answer("done", "active")
        is_repeat = job.token == outcome.token and job.state in MOVES[outcome.move].targets
        return Answer("done" if is_repeat else "lost", job.state)

    def _record(self, job: JobRecord, outcome: Outcome, now: Instant) -> None:
        if outcome.move in ("retry", "fail"):
            assert outcome.failure is not None
            reason, trace = outcome.failure.reason, outcome.failure.trace
            self._fail_attempt(job, reason, trace, outcome.stack_traces, now)
            job = self._put(job, attempts_made=job.attempts_made + 1, reason=reason)
        match outcome.move:
            case "complete":
                self._finish(job, "completed", outcome.keep, now, reason=None, result=outcome.result)
            case "fail":
                self._finish(job, "failed", outcome.keep, now)
            case "retry" | "postpone" if outcome.delay:
                self._put(job, state="delayed", lock_until=None, due_at=now + outcome.delay)
            case "hand back":
                self._put(job, state="waiting", lock_until=None)
            case _:
                self._sequence += 1
                self._put(job, state="waiting", lock_until=None, order=self._sequence)

    def renew(self, locks: Sequence[Lock], lock: Milliseconds, now: Instant) -> list[str]:
        verdicts = []
        for held in locks:
            job = self.jobs.get(held.id)
            if job is None:
                verdicts.append("missing")
            elif job.state != "active" or job.token != held.token:
                verdicts.append("lost")
            else:
                self._put(job, lock_until=now + lock, renewed_at=now)
                verdicts.append("done")
        return verdicts

    def update(self, changes: Sequence[Change]) -> list[str]:
        verdicts = []
        for change in changes:
            job = self.jobs.get(change.id)
            if job is None:
                verdicts.append("missing")
            elif change.token is not None and (job.state != "active" or job.token != change.token):
                verdicts.append("lost")
            elif change.token is None and job.state in FINAL:
                verdicts.append("refused")
            else:
                self._put(job, progress=change.progress or job.progress, data=change.data or job.data)
                if change.alone is not None and job.state == "active":
                    self._mark(job, alone=change.alone)
                verdicts.append("done")
        return verdicts

    def _mark(self, job: JobRecord, *, alone: bool) -> None:
        (self.alone.add if alone else self.alone.discard)(job.id)

    # Keep in order

    def tick(self, rules: StallRules, now: Instant) -> Ticked:
        before = self._is_busy()
        promoted = self._promote_due(now)
        stalled, given_up = self._recover(rules, now)
        expired = [job for job in self.jobs.values() if job.expires_at is not None and job.expires_at <= now]
        for job in expired:
            self._drop(job)
        self._note_drained(before)
        return Ticked(promoted, stalled, given_up, len(expired), self._next_at(), now=now)

    def _recover(self, rules: StallRules, now: Instant) -> tuple[list[str], list[str]]:
        stalled, given_up = [], []
        finished: list[tuple[str, Retention]] = []
        for held in self.in_state("active"):
            if held.lock_until is not None and held.lock_until > now:
                continue
            options = held.read_options()
            self._fail_attempt(held, STALLED, "", options.stack_traces, now)
            made = held.attempts_made + (1 if rules.counts_as_attempt else 0)
            ends = held.stalled_count + 1 > rules.max_stalled_count or (
                rules.counts_as_attempt and made >= options.attempts
            )
            if ends and rules.on_stalled != "fail" and held.stalled_count > 0 and held.id not in self.alone:
                # Another job of its process may have caused it.
                ends, made = False, held.attempts_made
            job = self._put(
                held,
                stalled_count=held.stalled_count + 1,
                attempts_made=made,
                reason=STALLED,
                token=None,
                lock_until=None,
            )
            if ends or rules.on_stalled == "fail":
                keep = options.keep_failed or KEEP_FAILED
                self._finish(job, "failed", keep, now)
                finished.append((job.id, keep))
                given_up.append(job.id)
            else:
                self._put(job, state="waiting")
                stalled.append(job.id)
        self._retain(finished)
        return stalled, given_up

    def _next_at(self) -> Instant | None:
        ends = [end for job in self.jobs.values() for end in (job.due_at, job.lock_until, job.expires_at)]
        return min((end for end in ends if end not in (None, LAST_INSTANT)), default=None)

    # Operate

    def cancel(self, ids: Sequence[str], reason: str | None, now: Instant) -> list[Answer]:
        before = self._is_busy()
        answers = []
        finished: list[tuple[str, Retention]] = []
        for id in ids:
            job = self.jobs.get(id)
            if job is None:
                answers.append(Answer("missing"))
            elif job.state == "cancelled":
                answers.append(Answer("done", "cancelled"))
            elif job.state in FINAL:
                answers.append(Answer("refused", job.state))
            else:
                keep = job.read_options().keep_failed or KEEP_FAILED
                self._finish(job, "cancelled", keep, now, reason=reason, token=None)
                finished.append((id, keep))
                answers.append(Answer("done", job.state))
        self._retain(finished)
        self._note_drained(before)
        return answers

    def retry(self, ids: Sequence[str], *, reset: bool) -> list[Answer]:
        def again(job: JobRecord) -> None:
            cleared = ("result", "reason", "finished_at", "expires_at", "token", "progress")
            counters = ("attempts_made", "attempts_started", "stalled_count") if reset else ()
            self._put(job, state="waiting", **dict.fromkeys(cleared), **dict.fromkeys(counters, 0))

        return self._each(ids, FINAL, again)

    def promote(self, ids: Sequence[str]) -> list[Answer]:
        return self._each(ids, ("delayed",), lambda job: self._put(job, state="waiting", due_at=None))

    def change(self, edits: Sequence[Edit], now: Instant) -> list[Answer]:
        answers = []
        for edit in edits:
            job = self.jobs.get(edit.id)
            if job is None:
                answers.append(Answer("missing"))
            elif not _may_change(job, edit):
                answers.append(Answer("refused", job.state))
            else:
                self._change_one(job, edit, now)
                answers.append(Answer("done", job.state))
        return answers

    def _change_one(self, job: JobRecord, edit: Edit, now: Instant) -> None:
        if edit.priority is not None:
            job = self._put(job, priority=edit.priority)
        if edit.lifo is not None:
            job = self._put(job, order=-abs(job.order) if edit.lifo else abs(job.order))
        if edit.delay is not None:
            job = self._put(job, due_at=now + edit.delay)
        if edit.due_at is not None:
            job = self._put(job, due_at=edit.due_at)
        if edit.data is not None:
            self._put(job, data=edit.data)

    def remove(self, ids: Sequence[str], *, force: bool) -> list[Answer]:
        before = self._is_busy()
        allowed: list[State] = [state for state in STATES if force or state != "active"]
        answers = self._each(ids, allowed, self._drop)
        self._note_drained(before)
        return answers

    def configure(
        self,
        pause: bool | None = None,
        pause_names: Sequence[str] = (),
        resume_names: Sequence[str] = (),
        max_active: int | None = None,
    ) -> Settings:
        names = (set(self.settings.paused_names) | set(pause_names)) - set(resume_names)
        self.settings = Settings(
            self.settings.paused if pause is None else pause,
            tuple(sorted(names)),
            self.settings.max_active if max_active is None else (max_active or None),
        )
        return self.settings

    def clean(self, state: State, older_than: Milliseconds, limit: int, now: Instant) -> Cleaned:
        before = self._is_busy()

        def age(job: JobRecord) -> tuple[Instant, int]:
            return job.created_at if job.finished_at is None else job.finished_at, abs(job.order)

        old = sorted((job for job in self.in_state(state) if age(job)[0] <= now - older_than), key=age)
        for job in old[:limit]:
            self._drop(job)
        self._note_drained(before)
        return Cleaned([job.id for job in old[:limit]], more=len(old) > limit)

    # What several of them do

    def _put(self, job: JobRecord, **changes: Any) -> JobRecord:
        self.jobs[job.id] = replace(job, **changes)
        return self.jobs[job.id]

    def _drop(self, job: JobRecord) -> None:
        del self.jobs[job.id], self.failures[job.id]

    def _each(self, ids: Sequence[str], allowed: Sequence[State], act: Callable[[JobRecord], object]) -> list[Answer]:
        answers = []
        for id in ids:
            job = self.jobs.get(id)
            if job is None:
                answers.append(Answer("missing"))
            elif job.state not in allowed:
                answers.append(Answer("refused", job.state))
            else:
                act(job)
                answers.append(Answer("done", job.state))
        return answers

    def _promote_due(self, now: Instant) -> int:
        due = [job for job in self.in_state("delayed") if job.due_at is not None and job.due_at <= now]
        for job in due:
            self._put(job, state="waiting", due_at=None)
        return len(due)

    def _finish(self, job: JobRecord, state: State, keep: Retention, now: Instant, **changes: Any) -> None:
        self._put(
            job,
            state=state,
            lock_until=None,
            due_at=None,
            finished_at=now,
            expires_at=keep.until(now),
            **changes,
        )

    def _retain(self, finished: Sequence[tuple[str, Retention]]) -> None:
        counts: dict[State, int] = {}
        for id, keep in finished:
            state = self.jobs[id].state
            if keep.removes_at_once:
                self._drop(self.jobs[id])
            elif keep.count is not None:
                counts[state] = min(keep.count, counts.get(state, keep.count))
        for state, count in counts.items():
            counted = [job for job in self.in_state(state) if job.expires_at is not None]
            for job in counted[:-count]:
                self._drop(job)

    def _fail_attempt(self, job: JobRecord, reason: str, trace: str, keep: int, now: Instant) -> None:
        attempts = [
            *self.failures[job.id],
            FailedAttempt(job.attempts_started, now, job.worker, reason, trace),
        ]
        self.failures[job.id] = attempts[-keep:] if keep else []

    def _is_busy(self) -> bool:
        return any(job.state in ("waiting", "active") for job in self.jobs.values())

    def _note_drained(self, was_busy: bool) -> None:
        self.times_drained += was_busy and not self._is_busy()


_ORDER: dict[State, Callable[[JobRecord], Any]] = {
    "waiting": lambda job: (job.priority, job.order),
    "waiting-children": lambda job: abs(job.order),
    "delayed": lambda job: (job.due_at, job.order),
    "active": lambda job: (job.started_at, abs(job.order)),
}


def _may_change(job: JobRecord, edit: Edit) -> bool:
    moves_in_line = edit.priority is not None or edit.lifo is not None
    moves_in_time = edit.delay is not None or edit.due_at is not None
    if moves_in_line and job.state not in ("waiting", "delayed", "waiting-children"):
        return False
    if moves_in_time and job.state != "delayed":
        return False
    return job.state not in FINAL
