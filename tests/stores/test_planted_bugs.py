"""A test of the tests: bugs planted on purpose, each of which the suite or the machine must catch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from ropeway.job.instants import Instant
from ropeway.store.commands import Add, Claim, Count, Find, Promote, ReadEvents, Renew, Settle, Tick, Update, Withdraw
from ropeway.store.contract import Listener, Store
from ropeway.store.url import connect
from ropeway.store.values import Answer, Children, JobChange, Lock, Settled, Topic
from ropeway.testing import conformance as suite
from ropeway.testing.auditor import AuditedStore
from ropeway.testing.conformance.fixtures import NewHandle
from ropeway.testing.factories import MINUTE, complete
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


BUGS: Final = [
    Bug(
        SettlesForAnybody,
        lambda on: suite.TestSettleFence().test_a_foreign_token_changes_nothing(on.store, complete),
    ),
    Bug(
        SettlesWhateverIsActive,
        lambda on: suite.TestSettleFence().test_a_stale_token_changes_nothing(on.store, complete),
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
        lambda on: suite.TestRepeatedSettle().test_a_repeat_is_answered_as_before_and_changes_nothing(
            on.store, complete
        ),
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
async def test_the_suite_catches_the_bug(bug: Bug) -> None:
    anchor = connect("memory://")

    with pytest.raises(AssertionError):
        await keep(bug.broken, lambda: bug.store(anchor.sibling()))

    await anchor.close()


@every_bug
async def test_a_sound_store_keeps_the_same_promise(bug: Bug) -> None:
    anchor = connect("memory://")

    await keep(bug.broken, lambda: StoreProxy(anchor.sibling()))

    await anchor.close()


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.is_seen_by_the_machine], ids=lambda bug: bug.store.__name__)
def test_the_machine_catches_the_bug(bug: Bug) -> None:
    def new_machine() -> StoreMachine:
        anchor = connect("memory://")
        return StoreMachine(lambda: bug.store(anchor.sibling()))

    # Whether it is found matters here, not its shortest form.
    search = settings(stateful_step_count=50, phases=[Phase.generate], report_multiple_bugs=False)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(new_machine, settings=search)  # type: ignore[arg-type]  # takes any maker
