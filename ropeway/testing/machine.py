"""Drives a store and the model side by side, on virtual time, and compares all that can be seen of both.

Calls go through two handles in turn, so that what one of them only imagined does not pass.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from ..job.failure import Failure
from ..job.instants import Milliseconds
from ..job.outcomes import Outcome, SettlingMove
from ..job.record import JobRecord, NewJob
from ..job.retention import Retention
from ..job.states import STATES, State
from ..store.contract import Store
from ..store.values import Answer, Change, ClaimRequest, Edit, Lock, Query, StallRules
from .auditor import AuditedStore, Books
from .conformance.fixtures import NewHandle
from .factories import FOREIGN, MINUTE, NOW, QUEUE, claim_request, new_job
from .model import STALLED, Model
from .steps import WEIGHED_STEPS

T = TypeVar("T")
Held: TypeAlias = Literal["current", "stale", "foreign"]
Aim: TypeAlias = Literal["active", "any"]


class StoreMachine(RuleBasedStateMachine):
    """Make one for each run, with a function that answers handles on an empty store."""

    def __init__(self, new_handle: NewHandle) -> None:
        super().__init__()
        self.new_handle = new_handle
        self.runner = asyncio.Runner()
        self.model = Model()
        self.books = Books()
        self.handles = [AuditedStore(new_handle(), self.books) for _ in range(2)]
        self.now = NOW
        self.tokens: defaultdict[str, list[str]] = defaultdict(list)
        self.last_settle: Sequence[Outcome] = ()
        self.last_claim: ClaimRequest | None = None

    # One rule for all steps: of many rules Hypothesis leaves out half in each run, and jobs that are never
    # added or never claimed show nothing.
    @rule(step=WEIGHED_STEPS)
    def step(self, step: tuple[str, dict[str, Any]]) -> None:
        name, given = step
        getattr(self, name)(**given)

    # Produce and run

    def add(self, bundles: list[list[NewJob]]) -> None:
        answers = self.run(self.store.add(bundles, now=self.now))
        assert answers == self.model.add(bundles, self.now)

    def add_a_plain_job(self, id: str, name: str) -> None:
        self.add([[new_job(id, name=name)]])

    def claim(self, request: dict[str, Any]) -> None:
        self._claim(claim_request(**request))

    def claim_again_after_a_lost_answer(self) -> None:
        # Whether a repeat promotes is left to the store: with nothing due it cannot be seen.
        is_due = any(job.due_at is not None and job.due_at <= self.now for job in self.model.jobs.values())
        if self.last_claim and not is_due:
            self._claim(replace(self.last_claim, repeat=True))

    def _claim(self, request: ClaimRequest) -> None:
        claimed = self.run(self.store.claim(request, now=self.now))
        expected = self.model.claim(request, self.now)
        self._same_jobs(claimed.jobs, expected.jobs)
        assert claimed.now == expected.now
        if not request.repeat:
            assert claimed.again_at == expected.again_at
        self._note(request, claimed.jobs)

    def settle(
        self,
        ids: list[str],
        aim: Aim,
        held: Held,
        move: SettlingMove,
        delay: Milliseconds,
        keep: Retention,
        then: dict[str, Any] | None,
    ) -> None:
        failure = Failure("no luck", "a trace")
        outcomes = [
            Outcome(id, self._token(id, held), move, '"sent"', failure, delay, keep, stack_traces=2)
            for id in self._aimed(ids, aim)
        ]
        self.last_settle = outcomes
        self._settle(outcomes, claim_request(**then) if then else None)

    def settle_again_after_a_lost_answer(self) -> None:
        self._settle(self.last_settle, None)

    def _settle(self, outcomes: Sequence[Outcome], then: ClaimRequest | None) -> None:
        settled = self.run(self.store.settle(QUEUE, outcomes, then, now=self.now))
        expected = self.model.settle(outcomes, then, self.now)
        assert settled.answers == expected.answers
        assert (settled.claimed is None) == (expected.claimed is None)
        if then and settled.claimed and expected.claimed:
            self._same_jobs(settled.claimed.jobs, expected.claimed.jobs)
            assert settled.claimed.again_at == expected.claimed.again_at
            self._note(then, settled.claimed.jobs)

    def renew(self, ids: list[str], aim: Aim, held: Held, lock: Milliseconds) -> None:
        locks = [Lock(id, self._token(id, held)) for id in self._aimed(ids, aim)]
        answers = self.run(self.store.renew(QUEUE, locks, lock, now=self.now))
        assert [answer.verdict for answer in answers] == self.model.renew(locks, lock, self.now)

    def update(
        self, id: str, aim: Aim, held: Held | None, progress: str | None, data: str | None, alone: bool | None
    ) -> None:
        [id] = self._aimed([id], aim)
        changes = [Change(id, self._token(id, held) if held else None, progress, data, alone=alone)]
        answers = self.run(self.store.update(QUEUE, changes, now=self.now))
        assert [answer.verdict for answer in answers] == self.model.update(changes)

    def write_log(self, id: str, lines: int, keep: int) -> None:
        changes = [Change(id, log=tuple(f"line {number}" for number in range(lines)), keep_logs=keep)]
        answers = self.run(self.store.update(QUEUE, changes, now=self.now))
        assert [answer.verdict for answer in answers] == self.model.update(changes)

    # Operate

    def clear_log(self, id: str, keep: int) -> None:
        job = self.model.jobs.get(id)
        answer = self.run(self.store.clear_log(QUEUE, id, keep=keep))
        assert answer == (Answer("done", job.state) if job else Answer("missing"))

    def publish(self, name: str) -> None:
        self.run(self.store.publish(QUEUE, name, '{"rows": 3}', now=self.now))

    def cancel(self, ids: list[str], reason: str | None) -> None:
        answers = self.run(self.store.cancel(QUEUE, ids, reason, now=self.now))
        assert answers == self.model.cancel(ids, reason, self.now)

    def retry_by_hand(self, ids: list[str], reset: bool) -> None:
        answers = self.run(self.store.retry(QUEUE, ids, reset=reset, now=self.now))
        assert answers == self.model.retry(ids, reset=reset)

    def promote(self, ids: list[str]) -> None:
        answers = self.run(self.store.promote(QUEUE, ids, now=self.now))
        assert answers == self.model.promote(ids)

    def change(
        self, id: str, priority: int | None, lifo: bool | None, delay: Milliseconds | None, data: str | None
    ) -> None:
        edits = [Edit(id, priority, lifo, delay, None, data)]
        answers = self.run(self.store.change(QUEUE, edits, now=self.now))
        assert answers == self.model.change(edits, self.now)

    def remove(self, ids: list[str], force: bool) -> None:
        answers = self.run(self.store.remove(QUEUE, ids, force=force, now=self.now))
        assert answers == self.model.remove(ids, force=force)

    def pause_or_resume(self, pause: bool) -> None:
        self._configure(pause=pause)

    def pause_or_resume_a_name(self, pause: bool, name: str) -> None:
        self._configure(**{"pause_names" if pause else "resume_names": [name]})

    def limit(self, max_active: int) -> None:
        self._configure(max_active=max_active)

    def _configure(self, **given: Any) -> None:
        settings = self.run(self.store.configure(QUEUE, **given, now=self.now))
        expected = self.model.configure(**given)
        assert replace(settings, paused_names=tuple(sorted(settings.paused_names))) == expected

    def clean(self, state: State, older_than: Milliseconds, limit: int) -> None:
        cleaned = self.run(self.store.clean(QUEUE, state, older_than=older_than, limit=limit, now=self.now))
        assert cleaned == self.model.clean(state, older_than, limit, self.now)

    # Time and accidents

    def tick(self, rules: StallRules) -> None:
        ticked = self.run(self.store.tick(QUEUE, rules, now=self.now))
        expected = self.model.tick(rules, self.now)
        assert replace(ticked, stalled=sorted(ticked.stalled), given_up=sorted(ticked.given_up)) == replace(
            expected, stalled=sorted(expected.stalled), given_up=sorted(expected.given_up)
        )

    def workers_die_again_and_again(self, request: dict[str, Any], rules: StallRules, times: int) -> None:
        for _ in range(times):
            self.claim(request)
            self.time_passes(MINUTE)
            self.tick(rules)

    def time_passes(self, by: Milliseconds) -> None:
        """Whoever held a lock was busy, or is gone: the store cannot know."""
        self.now += by

    def a_handle_is_closed_and_another_opened(self, which: int) -> None:
        self.run(self.handles[which].close())
        self.handles[which] = AuditedStore(self.new_handle(), self.books)

    # Compare

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        page = self.run(self.store.find(Query(QUEUE, STATES)))
        self._same_jobs(page.jobs, self.model.everything())
        assert self.run(self.store.count(QUEUE)) == self.model.count()

    def teardown(self) -> None:
        try:
            self.run(self._check_the_rest())
        finally:
            for handle in self.handles:
                self.run(handle.close())
            self.runner.close()

    async def _check_the_rest(self) -> None:
        for id, failures in self.model.failures.items():
            history = await self.store.history(QUEUE, id)
            assert history is not None
            found = [replace(failure, reason=_reason(failure.reason)) for failure in history.failures]
            assert found == failures
        stream = await self.store.events(QUEUE, limit=100_000)
        drained = [stored for stored in stream.entries if stored.entry.what == "drained"]
        assert len(drained) == self.model.times_drained
        await self.handles[0].check()

    # Help

    @property
    def store(self) -> Store:
        self.handles.reverse()
        return self.handles[0]

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        # Not by `runner.run`, which sets a signal handler for each call.
        return self.runner.get_loop().run_until_complete(call)

    def _aimed(self, ids: Sequence[str], aim: Aim) -> list[str]:
        """The ids themselves, or as many active jobs (else any jobs), where the interesting things happen."""
        jobs = self.model.in_state("active") or self.model.everything()
        return [job.id for job in jobs[: len(ids)]] if aim == "active" and jobs else list(ids)

    def _token(self, id: str, held: Held) -> str:
        seen = self.tokens[id]
        if held == "foreign" or not seen:
            return FOREIGN
        return seen[-1] if held == "current" else seen[0]

    def _note(self, request: ClaimRequest, jobs: Sequence[JobRecord]) -> None:
        self.last_claim = request
        for job in jobs:
            if request.token not in self.tokens[job.id]:
                self.tokens[job.id].append(request.token)

    def _same_jobs(self, jobs: Sequence[JobRecord], expected: Sequence[JobRecord]) -> None:
        """Equal in everything but the numbers of the store's own sequence."""
        assert [_comparable(job) for job in jobs] == [replace(job, order=0) for job in expected]


def _comparable(job: JobRecord) -> JobRecord:
    return replace(job, order=0, reason=job.reason and _reason(job.reason))


def _reason(text: str) -> str:
    """The contract leaves the words for a stall to the store, but wants the worker named."""
    return STALLED if "stalled" in text and "worker-" in text else text
