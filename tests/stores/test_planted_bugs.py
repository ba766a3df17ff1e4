"""A test of the tests: bugs planted on purpose, each of which the suite or the machine must catch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from ropeway.job.dedupe import ACTIONS
from ropeway.job.instants import Instant
from ropeway.job.record import JobRecord, NewJob
from ropeway.store.commands import (
    Add,
    Cancel,
    Claim,
    Clean,
    Command,
    Count,
    Find,
    Promote,
    ReadEvents,
    ReleaseDedupe,
    Remove,
    Renew,
    Settle,
    Tick,
    Update,
    Withdraw,
    WriteSchedules,
)
from ropeway.store.contract import Listener, Store
from ropeway.store.url import connect
from ropeway.store.values import Answer, Children, JobChange, Lock, Settled, StoredSchedule, Topic
from ropeway.stores.memory.verbs.storing import store as store_job
from ropeway.testing import conformance as suite
from ropeway.testing.auditor import AuditedStore
from ropeway.testing.conformance import listen
from ropeway.testing.conformance.fixtures import NewHandle
from ropeway.testing.factories import MINUTE
from ropeway.testing.machine import StoreMachine
from ropeway.testing.proxy import StoreProxy


class Spoiled(StoreProxy):
    """A store with a bug in one of its commands: `spoil` executes those."""

    async def do(self, command: Any, now: Instant | None = None) -> Any:
        return await self.spoil(command, now)

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        return await self.inner.do(command, now)


class SettlesForAnybody(Spoiled):
    """No fence at all: whoever comes is taken for the holder."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Settle):
            jobs = await self.inner.get(command.queue, [outcome.id for outcome in command.outcomes])
            forged = [
                replace(outcome, token=job.token) if job and job.token else outcome
                for outcome, job in zip(command.outcomes, jobs, strict=True)
            ]
            command = replace(command, outcomes=forged)
        return await super().spoil(command, now)


class SettlesWhateverIsActive(Spoiled):
    """The state is the fence: a job that runs again takes the result of its first run."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Settle):
            jobs = await self.inner.get(command.queue, [outcome.id for outcome in command.outcomes])
            forged = [
                replace(outcome, token=job.token) if job and job.state == "active" else outcome
                for outcome, job in zip(command.outcomes, jobs, strict=True)
            ]
            command = replace(command, outcomes=forged)
        return await super().spoil(command, now)


class RenewsForAnybody(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Renew):
            jobs = await self.inner.get(command.queue, [held.id for held in command.locks])
            forged = [
                Lock(held.id, job.token) if job and job.token else held
                for held, job in zip(command.locks, jobs, strict=True)
            ]
            command = replace(command, locks=forged)
        return await super().spoil(command, now)


class UpdatesForAnybody(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Update):
            # Children need a token, of whomever.
            updates = [update if update.children else replace(update, token=None) for update in command.updates]
            command = replace(command, updates=updates)
        return await super().spoil(command, now)


class AcknowledgesFirst(Spoiled):
    """Says `done` and writes a moment later; a crash in between loses the outcome."""

    writing: asyncio.Task[Settled] | None = None

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if not isinstance(command, Settle):
            return await super().spoil(command, now)
        self.writing = asyncio.create_task(self.inner.do(command, now))
        return Settled([Answer("done", "active")] * len(command.outcomes))

    async def close(self) -> None:
        if self.writing:
            self.writing.cancel()
        await self.inner.close()


class ForgetsWhatItSettled(Spoiled):
    """Takes a repeated settle, whose first answer was lost, for a stranger's."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        answer = await super().spoil(command, now)
        if not isinstance(command, Settle):
            return answer
        answers = [
            Answer("lost", one.state) if one.verdict == "done" and one.state != "active" else one
            for one in answer.answers
        ]
        return Settled(answers, answer.claimed)


class RecoversById(Spoiled):
    """Looks for locks that ran out, and then recovers those jobs, whoever holds them by now."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Tick):
            assert now is not None
            queue = command.queue
            active = (await self.inner.find(Find(queue, ("active",)))).jobs
            over = [job.id for job in active if job.lock_until is not None and job.lock_until <= now]
            # A call beside it comes in between.
            await asyncio.sleep(0)
            current = [job for job in await self.inner.get(queue, over) if job and job.token]
            await self.inner.renew(queue, [Lock(job.id, job.token or "") for job in current], 0, now=now)
        return await super().spoil(command, now)


class BelievesTheClient(Spoiled):
    """The clock of the worker that ticks decides; it runs a minute ahead."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if not isinstance(command, Tick):
            return await super().spoil(command, now)
        assert now is not None
        return replace(await self.inner.do(command, now + MINUTE), now=now)


class BlamesNeighbours(Spoiled):
    """Every attempt counts as one that ran alone."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Claim):
            command = replace(command, isolates=False)
        return await super().spoil(command, now)


class _DeafBetweenWaits:
    def __init__(self, store: Store, topic: Topic, queues: Sequence[str]) -> None:
        self.begin = lambda: store.listen(topic, queues)

    async def wait(self, timeout: float | None = None) -> bool:
        listener = self.begin()
        try:
            return await listener.wait(timeout)
        finally:
            listener.close()

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass


class LosesWakes(StoreProxy):
    """Hears only while somebody waits: what happens between looking and waiting is missed."""

    def listen(self, topic: Topic, queues: Sequence[str], _: str | None = None) -> Listener:
        return _DeafBetweenWaits(self.inner, topic, queues)


class PromotesToTheHead(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        ids: Sequence[str] = ()
        if isinstance(command, Claim):
            page = await self.inner.find(Find(command.queue, ("delayed",)))
            ids = [job.id for job in page.jobs if job.due_at and now and job.due_at <= now]
        elif isinstance(command, Promote):
            ids = command.ids
        if ids:
            await self.inner.change(command.queue, [JobChange(id, lifo=True) for id in ids], now=now)
        return await super().spoil(command, now)


class CountsCancelledAsWaiting(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        answer = await super().spoil(command, now)
        if isinstance(command, Count):
            return {**answer, "waiting": answer["waiting"] + answer["cancelled"], "cancelled": 0}
        return answer


class AddsHalfABundle(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if not isinstance(command, Add):
            return await super().spoil(command, now)
        answers = await self.inner.add([[job] for bundle in command.bundles for job in bundle], now=now)
        one_by_one = iter(answers)
        return [[next(one_by_one)[0] for _ in bundle] for bundle in command.bundles]


class ClaimsMoreOnRepeat(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Claim):
            command = replace(command, repeat=False)
        return await super().spoil(command, now)


class ForgetsAnEvent(Spoiled):
    """Cancels without saying so; only the auditor can know."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        answer = await super().spoil(command, now)
        if isinstance(command, ReadEvents):
            kept = [stored for stored in answer.entries if stored.entry.what != "cancel"]
            return replace(answer, entries=kept)
        return answer


class AwaitsNoChildren(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        answer = await super().spoil(command, now)
        return replace(answer, awaited=False) if isinstance(answer, Children) else answer


class ReleasesParentsEarly(Spoiled):
    """A parent does not wait for its children."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Add):
            bundles = [[replace(job, children=()) for job in bundle] for bundle in command.bundles]
            command = replace(command, bundles=bundles)
        return await super().spoil(command, now)


class DoesNotWait(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Claim):
            command = replace(command, wait=0)
        return await super().spoil(command, now)


class TakesJobsWhenWithdrawn(Spoiled):
    """A withdrawal is taken for a repeated claim."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, Withdraw):
            command = Claim(command.queue, command.worker, command.token, 1, MINUTE, repeat=True)
        return await super().spoil(command, now)


class Patched(Spoiled):
    """Part of the memory store is replaced while it executes certain commands."""

    during: tuple[type[Command[Any]], ...]
    part: str
    """Below the verbs of the memory store."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.target = f"ropeway.stores.memory.verbs.{self.part}"

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if not isinstance(command, self.during):
            return await super().spoil(command, now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.target, self.instead)
            return await super().spoil(command, now)

    @staticmethod
    def instead(*_: Any, **__: Any) -> Any:
        """Does nothing."""


class KeepsKeysOfSettled(Patched):
    during, part = (Settle,), "ending.free_key"


class KeepsKeysOfCancelled(Patched):
    during, part = (Cancel,), "ending.free_key"


class KeepsKeysOfRemoved(Patched):
    during, part = (Remove,), "ending.free_key"


class KeepsKeysOfGivenUp(Patched):
    during, part = (Tick,), "ending.free_key"


class FreesThrottledKeys(Patched):
    """A key is free when its job has ended, though it is held for a time."""

    during, part = (Settle,), "ending.free_key"

    @staticmethod
    def instead(step: Any, job: JobRecord, key: str) -> None:
        queue = step.queue(job.queue)
        queue.assign(queue.held_keys, key, None)


class HasTwoHolders(Patched):
    """A key counts as free while its job runs."""

    during, part = (Add,), "dedupe.ACTIONS"
    instead: Any = MappingProxyType({**ACTIONS, "until-final": {**ACTIONS["until-final"], "active": "take"}})


class LeavesFollowersBehind(Patched):
    during, part = (Settle, Cancel, Remove, Tick), "dedupe_keys.start_follower"


class ReleasesWithoutTheFollower(Patched):
    during, part = (ReleaseDedupe,), "dedupe.start_follower"


class SupersedesUnseen(Patched):
    """The worker that runs the superseded job is not told."""

    during, part = (Add,), "dedupe.revoke"


class StartsWhatExpired(Patched):
    during, part = (Claim,), "claim.expire_due"

    @staticmethod
    def instead(*_: Any) -> int:
        return 0


class ExpiresWhatWasStarted(Spoiled):
    """The deadline of a job is kept when it is claimed."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if isinstance(command, Claim):
                patch.setattr("ropeway.stores.memory.start_deadlines.StartDeadlines.remove", lambda *_: None)
            return await super().spoil(command, now)


class LosesFollowUps(Patched):
    during, part = (Settle,), "ending.store"


class DoublesFollowUps(Patched):
    """Each add of a follow-up has an id of its own, and is repeated."""

    during, part = (Settle,), "ending.store"

    @staticmethod
    def instead(step: Any, job: NewJob) -> None:
        for id in (job.id, f"{job.id}-again"):
            store_job(step, replace(job, id=id))


class WritesStaleSchedules(Spoiled):
    """The last writer wins, whatever it had read."""

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        if isinstance(command, WriteSchedules):
            command = replace(command, writes=[replace(write, expect=None) for write in command.writes])
        return await super().spoil(command, now)


class ForgetsDueSchedules(Spoiled):
    """A schedule is answered when it is due for the first time, and not again."""

    answered: frozenset[StoredSchedule] = frozenset()

    async def spoil(self, command: Any, now: Instant | None) -> Any:
        answer = await super().spoil(command, now)
        if not isinstance(command, Tick):
            return answer
        due = [schedule for schedule in answer.schedules if schedule not in self.answered]
        self.answered |= {*due}
        return replace(answer, schedules=due)


class AnswersNoSchedules(Spoiled):
    async def spoil(self, command: Any, now: Instant | None) -> Any:
        answer = await super().spoil(command, now)
        return replace(answer, schedules=[]) if isinstance(command, Tick) else answer


class CleansScheduledJobs(Patched):
    during, part = (Clean,), "clean._without_scheduled"

    @staticmethod
    def instead(_: Any, keys: Any, before: tuple[int], most: int) -> Any:
        return keys.first(most, before=before)


class Bench(NamedTuple):
    store: AuditedStore
    sibling: AuditedStore
    new_handle: NewHandle


Promise = Callable[[Bench], Awaitable[None]]


class Bug(NamedTuple):
    store: type[StoreProxy]
    broken: Promise
    """The test of the suite that must notice."""
    is_seen_by_the_machine: bool = True
    """False if it cannot see it, or only after too many runs."""


async def _frees_its_key(on: Bench) -> None:
    await suite.TestDedupeEnds().test_however_the_job_goes_the_key_is_free(on.store)


BUGS: Final = [
    Bug(
        SettlesForAnybody,
        lambda on: suite.TestSettleFence().test_a_foreign_token_changes_nothing(on.store),
    ),
    Bug(
        SettlesWhateverIsActive,
        lambda on: suite.TestSettleFence().test_a_stale_token_changes_nothing(on.store),
    ),
    Bug(RenewsForAnybody, lambda on: suite.TestRenew().test_a_foreign_token_extends_nothing(on.store)),
    Bug(UpdatesForAnybody, lambda on: suite.TestUpdate().test_a_foreign_token_changes_nothing(on.store)),
    Bug(
        AcknowledgesFirst,
        lambda on: suite.TestSettleDurability().test_what_was_acknowledged_is_there_for_the_next_handle(
            on.store, on.new_handle
        ),
    ),
    Bug(
        ForgetsWhatItSettled,
        lambda on: suite.TestRepeatedSettle().test_a_repeat_is_answered_as_before_and_changes_nothing(on.store),
    ),
    Bug(
        RecoversById,
        lambda on: suite.TestTickRecovers().test_recovery_and_renewal_at_once_do_not_both_succeed(on.store, on.sibling),
        is_seen_by_the_machine=False,
    ),
    Bug(
        RecoversById,
        lambda on: suite.TestTickRecovers().test_recovery_never_takes_the_job_from_its_next_holder(
            on.store, on.sibling
        ),
        is_seen_by_the_machine=False,
    ),
    Bug(
        BelievesTheClient,
        lambda on: suite.TestTickRecovers().test_a_lock_holds_until_its_last_instant(on.store),
    ),
    Bug(
        BlamesNeighbours,
        lambda on: suite.TestTickSpares().test_a_job_that_ran_beside_others_waits_again(on.store),
    ),
    Bug(
        LosesWakes,
        lambda on: suite.TestListener().test_what_happened_between_looking_and_waiting_is_heard(on.store),
        is_seen_by_the_machine=False,
    ),
    Bug(
        PromotesToTheHead,
        lambda on: suite.TestClaimOrder().test_a_promoted_job_does_not_overtake_older_ones(on.store),
    ),
    Bug(
        CountsCancelledAsWaiting,
        lambda on: suite.TestCancel().test_a_cancelled_job_is_never_claimed(on.store),
    ),
    Bug(AddsHalfABundle, lambda on: suite.TestAdd().test_a_conflict_stores_nothing_of_its_bundle(on.store)),
    Bug(
        ClaimsMoreOnRepeat,
        lambda on: suite.TestRepeatedClaim().test_a_repeated_claim_gives_the_same_jobs(on.store),
    ),
    Bug(
        DoesNotWait,
        lambda on: suite.TestWaitingClaim().test_it_waits_on_for_jobs_of_its_names(on.store),
        is_seen_by_the_machine=False,
    ),
    Bug(
        TakesJobsWhenWithdrawn,
        lambda on: suite.TestWaitingClaim().test_withdrawing_a_claim_that_nobody_sent_does_nothing(on.store),
        is_seen_by_the_machine=False,
    ),
    Bug(AwaitsNoChildren, lambda on: suite.TestAwaited().test_until_the_last_child_has_ended(on.store)),
    Bug(ReleasesParentsEarly, lambda on: suite.TestAddFlow().test_a_parent_waits_for_its_children(on.store)),
    Bug(ForgetsAnEvent, lambda on: suite.TestCancel().test_a_cancelled_job_is_never_claimed(on.store)),
    Bug(KeepsKeysOfSettled, _frees_its_key),
    Bug(KeepsKeysOfCancelled, _frees_its_key),
    Bug(KeepsKeysOfRemoved, _frees_its_key, is_seen_by_the_machine=False),
    Bug(KeepsKeysOfGivenUp, _frees_its_key),
    Bug(
        FreesThrottledKeys,
        lambda on: suite.TestThrottle().test_the_key_is_held_for_its_time_whatever_becomes_of_the_job(on.store),
    ),
    Bug(
        HasTwoHolders,
        lambda on: suite.TestDedupe().test_the_table_says_what_a_second_add_does(on.store),
    ),
    Bug(
        LeavesFollowersBehind,
        lambda on: suite.TestKeepLast().test_it_goes_on_when_the_active_one_is_given_up(on.store),
    ),
    Bug(
        ReleasesWithoutTheFollower,
        lambda on: suite.TestReleaseDedupe().test_a_job_that_waits_for_the_holder_goes_on(on.store),
        is_seen_by_the_machine=False,
    ),
    Bug(
        SupersedesUnseen,
        lambda on: suite.TestSupersede().test_the_running_job_is_revoked(on.store),
        is_seen_by_the_machine=False,
    ),
    Bug(StartsWhatExpired, lambda on: suite.TestExpiry().test_a_claim_fails_a_job_that_is_too_old(on.store)),
    Bug(
        ExpiresWhatWasStarted,
        lambda on: suite.TestExpiry().test_a_job_that_was_started_does_not_expire(on.store),
        is_seen_by_the_machine=False,
    ),
    Bug(LosesFollowUps, lambda on: suite.TestDeadLetters().test_it_outlives_a_job_that_is_removed_at_once(on.store)),
    Bug(DoublesFollowUps, lambda on: suite.TestDeadLetters().test_a_repeated_settle_leaves_no_second(on.store)),
    Bug(
        WritesStaleSchedules,
        lambda on: suite.TestWriteSchedules().test_a_write_with_another_version_does_nothing(on.store),
    ),
    Bug(
        ForgetsDueSchedules,
        lambda on: suite.TestTickSchedules().test_they_are_due_until_they_are_written(on.store),
    ),
    Bug(
        AnswersNoSchedules,
        lambda on: suite.TestTickSchedules().test_a_tick_answers_those_that_are_due_the_earliest_first(on.store),
    ),
    Bug(
        CleansScheduledJobs,
        lambda on: suite.TestWriteSchedules().test_clean_leaves_jobs_of_schedules_until_they_are_final(on.store),
        is_seen_by_the_machine=False,
    ),
]
every_bug: Final = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.store.__name__)


async def keep(promise: Promise, new_handle: NewHandle) -> None:
    """Runs one test of the suite as its fixtures would: on an audited store, with its audit checked at the end."""
    store = AuditedStore(new_handle())
    sibling, witness = store.sibling(), AuditedStore(new_handle(), store.audit_log)
    try:
        await promise(Bench(store, sibling, new_handle))
        await witness.check()
    finally:
        for handle in (witness, sibling, store):
            await handle.close()


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls side by side run as they were made: some bugs are seen in that order only."""
    monkeypatch.setattr("ropeway.stores.memory.store._TURN", math.inf)


@every_bug
async def test_the_suite_catches_the_bug(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    # A wake that never comes is waited for in vain: the patience of a loaded machine's tests is not needed.
    monkeypatch.setattr(listen, "SOON", 1.0)
    anchor = connect("memory://")

    with pytest.raises(AssertionError):
        await keep(bug.broken, lambda: bug.store(anchor.sibling()))

    await anchor.close()


@every_bug
async def test_a_sound_store_keeps_the_same_promise(bug: Bug) -> None:
    anchor = connect("memory://")

    await keep(bug.broken, lambda: StoreProxy(anchor.sibling()))

    await anchor.close()


HARD_TO_SEE: Final = {
    BlamesNeighbours, ForgetsWhatItSettled, FreesThrottledKeys, HasTwoHolders, KeepsKeysOfCancelled, KeepsKeysOfGivenUp,
    KeepsKeysOfSettled, LeavesFollowersBehind, RenewsForAnybody, StartsWhatExpired,
}  # fmt: skip
"""The machine needs seconds for each of them, where others take a tenth."""


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=[pytest.mark.deep] if bug.store in HARD_TO_SEE else [])
        for bug in BUGS
        if bug.is_seen_by_the_machine
    ],
    ids=lambda bug: bug.store.__name__,
)
def test_the_machine_catches_the_bug(bug: Bug) -> None:
    def new_machine() -> StoreMachine:
        anchor = connect("memory://")
        return StoreMachine(lambda: bug.store(anchor.sibling()))

    # Whether it is found matters here, not its shortest form, nor how soon: few bugs take more than 50 runs.
    search = settings(max_examples=200, stateful_step_count=50, phases=[Phase.generate], report_multiple_bugs=False)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(new_machine, settings=search)  # type: ignore[arg-type]  # takes any maker
