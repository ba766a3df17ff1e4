"""A Hypothesis state machine that runs a store and a memory store side by side, and compares all they answer.

The conformance suite and the auditor vouch for the memory store. Commands go through two handles in turn, so that what
one of them only imagined does not pass.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from ..job.events import expand
from ..job.extras import Extras, WebhookRule
from ..job.failure import Failure
from ..job.flows import Child, Parent, Policy
from ..job.instants import Instant, Milliseconds
from ..job.marks import Mark, Marking
from ..job.outcomes import Outcome, SettlingMove
from ..job.record import JobRecord, NewJob
from ..job.retention import Retention
from ..job.stages import STAGES, Stage, callback_queue
from ..job.states import OPEN, STATES, State
from ..job.webhooks import DELIVERIES
from ..store import commands
from ..store.commands import Claim, Command, Find
from ..store.contract import Store
from ..store.url import connect
from ..store.values import Claimed, JobChange, JobUpdate, Lock, Page, ScheduleWrite, Settled, StallRules, Ticked
from .auditor import AuditedStore, AuditLog
from .conformance.fixtures import NewHandle
from .extra_steps import KEYS
from .factories import DAY, ELSEWHERE, FOREIGN, MINUTE, NOW, QUEUE, claim_request, keyed, new_job, token_of
from .steps import WEIGHED_STEPS

A = TypeVar("A")
Held: TypeAlias = Literal["current", "stale", "foreign"]
Aim: TypeAlias = Literal["active", "any"]
QUEUES: Final = (QUEUE, ELSEWHERE)
"""Most steps are about the first; the second has jobs of flows."""


class StoreMachine(RuleBasedStateMachine):
    """Make one for each run, with a function that answers handles on an empty store."""

    def __init__(self, new_handle: NewHandle) -> None:
        super().__init__()
        self.new_handle = new_handle
        self.runner = asyncio.Runner()
        self.reference = connect("memory://")
        self.audit_log = AuditLog()
        self.handles = [AuditedStore(new_handle(), self.audit_log) for _ in range(2)]
        self.now = NOW
        self.ids: set[str] = set()
        self.tokens: defaultdict[str, list[str]] = defaultdict(list)
        self.last_settle: Sequence[Outcome] = ()
        self.last_claim: Claim | None = None

    # One rule for all steps: of many rules Hypothesis leaves out half in each run, and jobs that are never
    # added or never claimed show nothing.
    @rule(step=WEIGHED_STEPS)
    def step(self, step: tuple[str, dict[str, Any]]) -> None:
        name, given = step
        getattr(self, name)(**given)

    # Produce and run

    def add(self, bundles: list[list[NewJob]]) -> None:
        self.ids |= {job.id for bundle in bundles for job in bundle}
        self.do(commands.Add(bundles))

    def add_flows(self, flows: list[list[NewJob]]) -> None:
        self.add(flows)

    def add_with_extras(self, bundles: list[list[NewJob]]) -> None:
        self.add(bundles)

    def add_a_flow_with_extras(self, flow: list[NewJob]) -> None:
        self.add([flow])

    def add_children(self, id: str, aim: Aim, held: Held, ids: list[str], queue: str, policy: Policy) -> None:
        [parent] = self._aimed([id], aim)
        adds = [new_job(child, queue=queue, parents=(Parent(QUEUE, parent),)) for child in ids if child != parent]
        links = tuple(Child(queue, child.id, policy) for child in adds)
        if links:
            self.do(
                commands.Update(QUEUE, [JobUpdate(parent, self._token(parent, held), children=links, adds=tuple(adds))])
            )

    def work_elsewhere(self, limit: int, move: SettlingMove, keep: Retention) -> None:
        """Runs jobs of the second queue, whose tokens are not used again."""
        jobs = self.do(claim_request(limit, queue=ELSEWHERE)).jobs
        outcomes = [Outcome(job.id, token_of(job), move, "5", Failure("no luck"), keep=keep) for job in jobs]
        if outcomes:
            self.do(commands.Settle(ELSEWHERE, sorted(outcomes, key=lambda outcome: outcome.id)))

    def change_elsewhere(self, how: Literal["cancel", "retry", "remove"], ids: list[str]) -> None:
        changes = {"cancel": commands.Cancel, "retry": commands.Retry, "remove": commands.Remove}
        self.do(changes[how](ELSEWHERE, ids))

    def read_children(self, id: str, queue: str, limit: int) -> None:
        """Page by page: how a page names the next one is the store's own."""
        found: list[list[Any]] = []
        for store in (self.store, self.reference):
            after: str | None = None
            pages: list[Any] = []
            while (page := self.run(store.children(queue, id, after=after, limit=limit))) is not None:
                pages.append((page.children, page.counts, page.awaited))
                after = page.next
                if after is None:
                    break
            found.append(pages)
        assert found[0] == found[1]

    def add_a_plain_job(self, id: str, name: str) -> None:
        self.add([[new_job(id, name=name)]])

    def claim(self, request: dict[str, Any]) -> None:
        self._claim(claim_request(**request))

    def claim_again_after_a_lost_answer(self) -> None:
        # The contract does not say whether a repeat promotes and expires: with nothing due the difference is invisible.
        is_due = any(_is_due(job, self.now) for job in self._jobs(*OPEN))
        if self.last_claim and not is_due:
            self._claim(replace(self.last_claim, repeat=True))

    def _claim(self, request: Claim) -> None:
        self._note(request, self.do(request).jobs)

    def settle(
        self,
        ids: list[str],
        aim: Aim,
        held: Held,
        move: SettlingMove,
        delay: Milliseconds,
        keep: Retention,
        then: dict[str, Any] | None,
        awaits_children: bool = False,
    ) -> None:
        failure = Failure("no luck", "a trace")
        if move == "fail" and keep.count and any(job.parents for job in self._jobs("active")):
            # The contract does not say whether parents that fail in the same step are among those that count.
            keep = Retention(age=keep.age)
        awaits = awaits_children and move == "postpone"
        outcomes = [
            Outcome(
                id,
                self._token(id, held),
                move,
                '"sent"',
                failure,
                0 if awaits else delay,
                keep,
                stack_traces=2,
                awaits_children=awaits,
            )
            # In this order: of several that go behind the others in one call, a store may settle any first.
            for id in sorted(self._aimed(ids, aim))
        ]
        self.last_settle = outcomes
        self._settle(outcomes, claim_request(**then) if then else None)

    def settle_and_add(self, move: SettlingMove, adds: tuple[NewJob, ...]) -> None:
        """One outcome: the contract does not say which keys are free when the jobs of several are added."""
        self.ids |= {job.id for job in adds}
        for job in self._jobs("active")[:1]:
            self._settle([Outcome(job.id, token_of(job), move, failure=Failure("no luck"), adds=adds)], None)

    def a_job_follows_an_active_one(self, ids: list[str], key: str) -> None:
        for id in ids:
            self.add([[keyed(key, "keep-last", id=id)]])
            self._claim(claim_request(3))

    def a_job_with_follow_ups_fails(self, id: str) -> None:
        webhook = WebhookRule("https://example.com/", ("failed",))
        self.add([[new_job(id, extras=Extras(dead_letter=ELSEWHERE, webhook=webhook))]])
        self._claim(claim_request(3))
        self.settle([id], "any", "current", "fail", 0, Retention(age=DAY), None)

    def settle_again_after_a_lost_answer(self) -> None:
        self._settle(self.last_settle, None)

    def _settle(self, outcomes: Sequence[Outcome], then: Claim | None) -> None:
        settled = self.do(commands.Settle(QUEUE, outcomes, then))
        if then and settled.claimed:
            self._note(then, settled.claimed.jobs)

    def renew(self, ids: list[str], aim: Aim, held: Held, lock: Milliseconds) -> None:
        locks = [Lock(id, self._token(id, held)) for id in self._aimed(ids, aim)]
        self.do(commands.Renew(QUEUE, locks, lock))

    def update(
        self,
        id: str,
        aim: Aim,
        held: Held | None,
        progress: str | None,
        data: str | None,
        alone: bool | None,
        clears: bool,
    ) -> None:
        [id] = self._aimed([id], aim)
        token = self._token(id, held) if held else None
        self.do(commands.Update(QUEUE, [JobUpdate(id, token, progress, data, alone=alone, clears_stalls=clears)]))

    def write_log(self, id: str, lines: int, keep: int) -> None:
        log = tuple(f"line {number}" for number in range(lines))
        self.do(commands.Update(QUEUE, [JobUpdate(id, log=log, keep_logs=keep)]))

    # Marks

    def mark(self, marking: Marking, ids: list[str], with_token: bool) -> None:
        changes = [JobUpdate(id, self._token(id, "current") if with_token else None, marking=marking) for id in ids]
        self.do(commands.Update(QUEUE, changes))
        self.do(commands.Get(QUEUE, ids))

    def settle_with_marks(self, move: SettlingMove, marking: Marking, awaits: str | None, delay: Milliseconds) -> None:
        for job in self._jobs("active")[:1]:
            outcome = Outcome(job.id, token_of(job), move, failure=Failure("no luck"), delay=delay, marking=marking)
            self._settle([replace(outcome, awaits=awaits if move == "postpone" else None)], None)
            self.do(commands.Get(QUEUE, [job.id]))

    def retry_and_mark(self, ids: list[str], forgets: str) -> None:
        self.do(commands.Retry(QUEUE, ids, marking=Marking((Mark("step:again", "3"),), (forgets,))))
        self.do(commands.Get(QUEUE, ids))

    # Operate

    def clear_log(self, id: str, keep: int) -> None:
        self.do(commands.ClearLog(QUEUE, id, keep))

    def publish(self, name: str, job: str | None) -> None:
        self.do(commands.Publish(QUEUE, name, '{"rows": 3}', job))

    def cancel(self, ids: list[str], reason: str | None) -> None:
        self.do(commands.Cancel(QUEUE, ids, reason))

    def retry_by_hand(self, ids: list[str], reset: bool) -> None:
        self.do(commands.Retry(QUEUE, ids, reset))

    def promote(self, ids: list[str]) -> None:
        self.do(commands.Promote(QUEUE, ids))

    def change(
        self, id: str, priority: int | None, lifo: bool | None, delay: Milliseconds | None, data: str | None
    ) -> None:
        self.do(commands.Change(QUEUE, [JobChange(id, priority, lifo, delay, None, data)]))

    def remove(self, ids: list[str], force: bool) -> None:
        self.do(commands.Remove(QUEUE, ids, force))

    def pause_or_resume(self, pause: bool) -> None:
        self.do(commands.Configure(QUEUE, pause))

    def pause_or_resume_a_name(self, pause: bool, name: str) -> None:
        to_pause, to_resume = ((name,), ()) if pause else ((), (name,))
        self.do(commands.Configure(QUEUE, None, to_pause, to_resume))

    def limit(self, max_active: int) -> None:
        self.do(commands.Configure(QUEUE, max_active=max_active))

    def retain(
        self, stale_after: Milliseconds | None, delete_after: Milliseconds | None, callbacks: tuple[Stage, ...] | None
    ) -> None:
        command = commands.Configure(QUEUE, stale_after=stale_after, delete_after=delete_after, callbacks=callbacks)
        self.do(command)

    def clean(self, state: State, older_than: Milliseconds, limit: int) -> None:
        self.do(commands.Clean(QUEUE, state, older_than, limit))

    # Schedules and dedupe keys

    def write_schedules(self, writes: list[dict[str, Any]]) -> None:
        self.do(commands.WriteSchedules(QUEUE, [self._write(**write) for write in writes]))

    def _write(
        self, id: str, due_in: int | None, expect: Literal["right", "wrong"] | None, **rest: Any
    ) -> ScheduleWrite:
        found = self.run(self.reference.schedules(QUEUE, [id]))
        version = found[0].version if found else 0
        expected = None if expect is None else version + (expect == "wrong")
        next_at = None if due_in is None else self.now + due_in
        self.ids |= {job.id for job in rest["adds"]}
        return ScheduleWrite(id, next_at=next_at, expect=expected, **rest)

    def read_schedules(self, after: str | None, limit: int) -> None:
        self.do(commands.ReadSchedules(QUEUE, after=after, limit=limit))

    def read_dedupe(self) -> None:
        for queue in QUEUES:
            for key in KEYS:
                self.do(commands.ReadDedupe(queue, key))

    def release_dedupe(self, key: str) -> None:
        self.do(commands.ReleaseDedupe(QUEUE, key))

    # Time and accidents

    def tick(self, rules: StallRules) -> None:
        self.do(commands.Tick(QUEUE, rules))

    def workers_die_again_and_again(self, request: dict[str, Any], rules: StallRules, times: int) -> None:
        for _ in range(times):
            self.claim(request)
            self.time_passes(MINUTE)
            self.tick(rules)

    def time_passes(self, by: Milliseconds) -> None:
        """Advances the time, as if the holders of locks were busy or dead: the store cannot know."""
        self.now += by

    def a_handle_is_closed_and_another_opened(self, which: int) -> None:
        self.run(self.handles[which].close())
        self.handles[which] = AuditedStore(self.new_handle(), self.audit_log)

    # Compare

    def do(self, command: Command[A]) -> A:
        """Executes it on both stores; answers what the store under test answered."""
        answer = self.run(self.store.do(command, self.now))
        expected = self.run(self.reference.do(command, self.now))
        assert _comparable(command, answer) == _comparable(command, expected)
        return answer

    @invariant()
    def both_hold_the_same_jobs(self) -> None:
        for queue in QUEUES:
            self.do(Find(queue, STATES))
            self.do(commands.Count(queue))

    def teardown(self) -> None:
        try:
            self._compare_the_rest()
            self.run(self.handles[0].check())
        finally:
            for handle in (*self.handles, self.reference):
                self.run(handle.close())
            self.runner.close()

    def _compare_the_rest(self) -> None:
        for id in sorted(self.ids):
            self.do(commands.ReadHistory(QUEUE, id))
            self.do(commands.ReadLog(QUEUE, id, limit=3))
            for queue in QUEUES:
                self.read_children(id, queue, 2)
        self.read_dedupe()
        self.do(commands.ReadSchedules(QUEUE))
        self.do(commands.ReadMetrics(QUEUE))
        self.do(commands.CountWaiting(QUEUE, [-1, 0, 1]))
        self.do(commands.ReadSettings(QUEUE))
        self.do(Find(QUEUE, STATES, stale=True))
        systems = DELIVERIES, *(callback_queue(QUEUE, stage) for stage in STAGES)
        for queue in systems:
            self.do(Find(queue, STATES))
        for queue in (*QUEUES, *systems):
            assert self.run(_announced(self.store, queue)) == self.run(_announced(self.reference, queue))

    # Help

    @property
    def store(self) -> Store:
        self.handles.reverse()
        return self.handles[0]

    def run(self, call: Coroutine[Any, Any, A]) -> A:
        # Not `runner.run`, which installs a signal handler for each call.
        return self.runner.get_loop().run_until_complete(call)

    def _jobs(self, *states: State) -> list[JobRecord]:
        return self.run(self.reference.find(Find(QUEUE, states))).jobs

    def _aimed(self, ids: Sequence[str], aim: Aim) -> list[str]:
        """The ids themselves, or as many active jobs (else any jobs), to which more can happen."""
        jobs = self._jobs("active") or self._jobs(*STATES)
        return [job.id for job in jobs[: len(ids)]] if aim == "active" and jobs else list(ids)

    def _token(self, id: str, held: Held) -> str:
        seen = self.tokens[id]
        if held == "foreign" or not seen:
            return FOREIGN
        return seen[-1] if held == "current" else seen[0]

    def _note(self, request: Claim, jobs: Sequence[JobRecord]) -> None:
        self.last_claim = request
        for job in jobs:
            if request.token not in self.tokens[job.id]:
                self.tokens[job.id].append(request.token)


def _comparable(command: Command[Any], answer: Any) -> Any:
    """The answer without what the contract leaves to each store, such as its sequence numbers."""
    match command, answer:
        case Claim(), Claimed():
            again_at = None if command.repeat else answer.again_at
            return replace(answer, jobs=_unnumbered(answer.jobs), again_at=again_at)
        case commands.Settle(then=Claim() as then), Settled(claimed=Claimed() as claimed):
            return replace(answer, claimed=_comparable(then, claimed))
        case (Find() | commands.Get(), _):
            return _unnumbered(
                [job for job in (answer.jobs if isinstance(answer, Page) else answer) if job is not None]
            )
        case ((commands.Renew() | commands.Update()), _):
            return [one.verdict for one in answer]
        case commands.Tick(), Ticked():
            return replace(answer, stalled=sorted(answer.stalled), given_up=sorted(answer.given_up))
    return answer


def _is_due(job: JobRecord, now: Instant) -> bool:
    """True if a claim would promote it, or let it expire."""
    deadline = job.extras.deadline(job.created_at) if job.extras and not job.attempts_started else None
    return any(at is not None and at <= now for at in (job.due_at, deadline))


def _unnumbered(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    return [replace(job, order=0) for job in jobs]


async def _announced(store: Store, queue: str) -> dict[tuple[str | None, str], list[Any]]:
    """The events of each job, in order, and of the whole queue, however the store grouped them in entries.

    Jobs found by their ids and by their keys are apart: in one call a store may announce either first.
    """
    announced: defaultdict[tuple[str | None, str], list[Any]] = defaultdict(list)
    entries = (await store.events(queue, limit=100_000)).entries
    assert (await store.events(queue, limit=100_000, newest_first=True)).entries == entries[::-1]
    for stored in entries:
        for event in expand(queue, stored.id, stored.entry):
            apart = event.name if event.name in ("duplicated", "deduplicated") else ""
            announced[event.job_id, apart].append((event.name, event.at, event.data))
    return announced
