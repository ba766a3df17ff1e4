"""Drives a store and the model side by side, on virtual time, and compares all that can be seen of both.

Calls go through two handles in turn, so that what one of them only imagined does not pass.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from ..job.failure import Failure
from ..job.instants import Milliseconds
from ..job.outcomes import Outcome, SettlingMove
from ..job.record import JobRecord, NewJob
from ..job.retention import Keep, Retention
from ..job.states import STATES, State
from ..store.contract import Store
from ..store.values import Change, ClaimRequest, Edit, Lock, Query, StallRules
from .auditor import AuditedStore, Books
from .conformance.fixtures import NewHandle
from .factories import DAY, FOREIGN, MINUTE, NOW, QUEUE, SECOND, claim_request, new_job
from .model import STALLED, Model

T = TypeVar("T")
Held: TypeAlias = Literal["current", "stale", "foreign"]
Aim: TypeAlias = Literal["active", "any"]

# Few of everything, so that calls meet the same jobs again and again.
_ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])
_some_ids = st.lists(_ids, min_size=1, max_size=3, unique=True)
_names = st.sampled_from(["send", "send", "print"])
_data = st.sampled_from(["1", "1", "1", "1", "2"])
_delays = st.sampled_from([0, 0, 0, SECOND, MINUTE])
_locks = st.sampled_from([SECOND, MINUTE])
_held = st.sampled_from(["current", "current", "current", "stale", "foreign"])
_aims = st.sampled_from(["active", "active", "any"])
_seldom = st.sampled_from([False, False, False, False, True])
_options = st.fixed_dictionaries(
    {},
    optional={
        "attempts": st.integers(1, 3),
        "remove_on_fail": st.sampled_from([True, False, Keep(age=60)]),
        "stack_traces": st.integers(0, 2),
    },
)
_new_jobs = st.builds(
    lambda options, **given: new_job(**given, **options),
    _options,
    id=_ids,
    name=_names,
    data=_data,
    delay=_delays,
    priority=st.integers(-1, 1),
    lifo=st.booleans(),
)
_requests = st.fixed_dictionaries(
    {
        "limit": st.integers(1, 3),
        "lock": _locks,
        "names": st.sampled_from([None, None, None, None, ("send",), ("print", "other")]),
        "worker": st.sampled_from(["worker-1", "worker-2"]),
    }
)

STEPS: Final[dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]]] = {
    "add": (7, {"bundles": st.lists(st.lists(_new_jobs, min_size=1, max_size=3), min_size=1, max_size=2)}),
    "claim": (6, {"request": _requests}),
    "claim_again_after_a_lost_answer": (1, {}),
    "settle": (
        5,
        {
            "ids": st.lists(_ids, min_size=1, max_size=2, unique=True),
            "aim": _aims,
            "held": _held,
            "move": st.sampled_from(["complete", "retry", "fail", "postpone", "hand back"]),
            "delay": _delays,
            "keep": st.sampled_from(
                [Retention(age=DAY), Retention(age=DAY), Retention(), Retention(count=0), Retention(count=1)]
            ),
            "then": st.none() | _requests,
        },
    ),
    "settle_again_after_a_lost_answer": (2, {}),
    "renew": (2, {"ids": _some_ids, "aim": _aims, "held": _held, "lock": _locks}),
    "update": (
        1,
        {
            "id": _ids,
            "aim": _aims,
            "held": st.none() | _held,
            "progress": st.none() | _data,
            "data": st.none() | _data,
        },
    ),
    "cancel": (1, {"ids": _some_ids, "reason": st.sampled_from([None, "not needed"])}),
    "retry_by_hand": (1, {"ids": _some_ids, "reset": st.booleans()}),
    "promote": (1, {"ids": _some_ids}),
    "change": (
        2,
        {
            "id": _ids,
            "priority": st.none() | st.integers(-1, 1),
            "lifo": st.none() | st.booleans(),
            "delay": st.none() | _delays,
            "data": st.none() | _data,
        },
    ),
    "remove": (1, {"ids": _some_ids, "force": _seldom}),
    "pause_or_resume": (1, {"pause": _seldom}),
    "pause_or_resume_a_name": (1, {"pause": _seldom, "name": _names}),
    "limit": (1, {"max_active": st.sampled_from([0, 0, 0, 1, 2])}),
    "clean": (
        1,
        {
            "state": st.sampled_from([state for state in STATES if state != "active"]),
            "older_than": st.sampled_from([0, SECOND, DAY]),
            "limit": st.integers(1, 3),
        },
    ),
    "tick": (
        3,
        {
            "rules": st.builds(
                StallRules,
                max_stalled_count=st.integers(0, 2),
                on_stalled=st.sampled_from(["requeue", "requeue", "fail"]),
                counts_as_attempt=st.booleans(),
            )
        },
    ),
    "time_passes": (4, {"by": st.sampled_from([1, SECOND - 1, SECOND, SECOND, MINUTE, MINUTE, DAY])}),
    "a_handle_is_closed_and_another_opened": (1, {"which": st.integers(0, 1)}),
}
"""What may happen: how often, and with what."""

_steps = st.one_of(
    [
        st.tuples(st.just(name), st.fixed_dictionaries(given))
        for name, (often, given) in STEPS.items()
        for _ in range(often)
    ]
)


class StoreMachine(RuleBasedStateMachine):
    """Make one for each run, with a function that answers handles on an empty store."""

    def __init__(self, new_handle: NewHandle) -> None:
        super().__init__()
        self.new_handle = new_handle
        self.runner = asyncio.Runner()
        self.model = Model()
        self.books = Books()
        self.now = NOW
        self.tokens: defaultdict[str, list[str]] = defaultdict(list)
        self.last_settle: Sequence[Outcome] = ()
        self.last_claim: ClaimRequest | None = None

    @initialize()
    def open_two_handles(self) -> None:
        self.handles = [AuditedStore(self.new_handle(), self.books) for _ in range(2)]

    # One rule for all steps: of many rules Hypothesis leaves out half in each run, and jobs that are never
    # added or never claimed show nothing.
    @rule(step=_steps)
    def step(self, step: tuple[str, dict[str, Any]]) -> None:
        name, given = step
        getattr(self, name)(**given)

    # Produce and run

    def add(self, bundles: list[list[NewJob]]) -> None:
        answers = self.run(self.store.add(bundles, now=self.now))
        assert answers == self.model.add(bundles, self.now)

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
        failure = Failure(f"{move} of {len(self.tokens)}", "trace")
        outcomes = [
            Outcome(id, self._token(id, held), move, '"sent"', failure, delay, keep, stack_traces=2) for id in ids
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

    def update(self, id: str, aim: Aim, held: Held | None, progress: str | None, data: str | None) -> None:
        [id] = self._aimed([id], aim)
        changes = [Change(id, self._token(id, held) if held else None, progress, data)]
        answers = self.run(self.store.update(QUEUE, changes, now=self.now))
        assert [answer.verdict for answer in answers] == self.model.update(changes)

    # Operate

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

    def time_passes(self, by: Milliseconds) -> None:
        """Whoever held a lock was busy, or is gone: the store cannot know."""
        self.now += by

    def a_handle_is_closed_and_another_opened(self, which: int) -> None:
        self.run(self.handles[which].close())
        self.handles[which] = AuditedStore(self.new_handle(), self.books)

    # Compare

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        if not hasattr(self, "handles"):
            return
        page = self.run(self.store.find(Query(QUEUE, STATES)))
        self._same_jobs(page.jobs, self.model.everything())
        assert self.run(self.store.count(QUEUE)) == self.model.count()

    def teardown(self) -> None:
        try:
            if hasattr(self, "handles"):
                self.run(self._check_the_rest())
        finally:
            for handle in getattr(self, "handles", ()):
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
        return self.runner.run(call)

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
