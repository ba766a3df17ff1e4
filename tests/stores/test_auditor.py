"""The auditor finds each kind of fault, and takes nothing else for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from ropeway.job.events import EVENTS_KEPT, Entry
from ropeway.job.flows import CHILD_STATES
from ropeway.job.instants import Instant
from ropeway.job.record import JobRecord
from ropeway.job.retention import Retention
from ropeway.store.commands import Claim, Find, Get, Settle
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.store.values import Answer, Children, JobUpdate, Page, Settled, StallRules
from ropeway.testing.arrange import active, add, claim, completed
from ropeway.testing.auditor import AuditedStore
from ropeway.testing.factories import LOCK, NOW, QUEUE, claim_request, complete, new_flow, new_job, new_jobs
from ropeway.testing.ledger import Ledger
from ropeway.testing.proxy import StoreProxy


@pytest.fixture
async def memory() -> AsyncIterator[Store]:
    store = connect("memory://")
    yield store
    await store.close()


def ledger_of(*entries: tuple[str, str | None]) -> Ledger:
    ledger = Ledger()
    for what, to in entries:
        ledger.read(Entry(what, NOW, to, [("a", None)]))  # type: ignore[arg-type]  # states, given as text
    return ledger


def test_a_legal_life_is_no_problem() -> None:
    ledger = ledger_of(("add", "waiting"), ("claim", "active"), ("complete", "completed"), ("remove", None))

    assert ledger.problems == []
    assert ledger.states == {}


@pytest.mark.parametrize(
    "life",
    [
        [("add", "waiting"), ("add", "waiting")],
        [("add", "active")],
        [("add", "waiting"), ("complete", "completed")],
        [("add", "waiting"), ("claim", "active"), ("claim", "active")],
        [("add", "waiting"), ("claim", "active"), ("complete", "completed"), ("complete", "completed")],
        [("add", "waiting"), ("cancel", "cancelled"), ("claim", "active")],
        [("add", "waiting"), ("remove", None), ("claim", "active")],
        [("add", "waiting"), ("invented", "active")],
    ],
)
def test_a_step_that_the_table_does_not_know_is_a_problem(life: list[tuple[str, str | None]]) -> None:
    assert len(ledger_of(*life).problems) == 1


def test_a_job_may_come_back_under_its_id() -> None:
    assert ledger_of(("add", "waiting"), ("remove", None), ("add", "delayed")).problems == []


def test_a_stream_that_was_trimmed_unread_begins_anywhere() -> None:
    ledger = ledger_of(("complete", "completed"), ("retry by hand", "waiting"))

    assert ledger.problems == []
    assert not ledger.is_whole


def test_more_active_jobs_than_may_be_are_a_problem() -> None:
    ledger = Ledger()
    ledger.max_active = 1
    ledger.read(Entry("add", NOW, "waiting", [("a", None), ("b", None)]))
    ledger.read(Entry("claim", NOW, "active", [("a", None), ("b", None)]))

    assert ledger.problems == ["2 jobs were active where 1 may be"]


async def test_a_sound_store_has_nothing_to_hide(memory: Store) -> None:
    store = AuditedStore(memory)
    await store.configure(QUEUE, max_active=2, now=NOW)
    await completed(store)
    held = await active(store)
    await store.settle(QUEUE, [complete(held, keep=Retention(count=0))], now=NOW)
    await add(store, *new_jobs(3))
    await claim(store, 5)
    await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)

    await store.check()


async def test_trimmed_events_are_no_fault(memory: Store) -> None:
    held = await active(memory)
    for _ in range(3 * EVENTS_KEPT // 1_000):
        await memory.update(QUEUE, [JobUpdate(held.id, held.token, progress="1")] * 1_000, now=NOW)
    await memory.tick(QUEUE, StallRules(), now=NOW)

    await AuditedStore(memory).check()


async def test_an_obliterated_queue_is_no_fault(memory: Store) -> None:
    store = AuditedStore(memory)
    await completed(store, id="a")
    await store.obliterate(QUEUE, now=NOW)
    await add(store, new_job("a"))

    await store.check()


class AcceptsEverything(StoreProxy):
    async def do(self, command: Any, now: Instant | None = None) -> Any:
        answer = await self.inner.do(command, now)
        if isinstance(command, Settle):
            return Settled([Answer("done", "active")] * len(command.outcomes))
        return answer


async def test_a_completion_accepted_twice_is_found(memory: Store) -> None:
    store = AuditedStore(AcceptsEverything(memory))
    held = await active(store)
    await store.settle(QUEUE, [complete(held)], now=NOW)
    await store.settle(QUEUE, [complete(held, token="another")], now=NOW)

    with pytest.raises(AssertionError, match=r"2 completions of .* were accepted, 1 happened"):
        await store.check()


class GivesOutTheSameTokenAgain(StoreProxy):
    async def do(self, command: Any, now: Instant | None = None) -> Any:
        if isinstance(command, Claim):
            command = replace(command, token="always")
        return await self.inner.do(command, now)


async def test_a_token_given_for_two_claims_is_found(memory: Store) -> None:
    store = AuditedStore(GivesOutTheSameTokenAgain(memory))
    await active(store)
    await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
    await claim(store, token="always", now=NOW + LOCK)

    with pytest.raises(AssertionError, match="given for two claims"):
        await store.check()


class ShowsJobsOtherwise(StoreProxy):
    """`find` answers from a copy that somebody forgot to update."""

    async def do(self, command: Any, now: Instant | None = None) -> Any:
        answer = await self.inner.do(command, now)
        if isinstance(command, Find):
            return Page([replace(job, data="old") for job in answer.jobs], answer.next)
        return answer


async def test_a_find_unlike_get_is_found(memory: Store) -> None:
    store = AuditedStore(ShowsJobsOtherwise(memory))
    await add(store, new_job())

    with pytest.raises(AssertionError, match=r"find says .* get says"):
        await store.check()


class LeavesLocksBehind(StoreProxy):
    async def do(self, command: Any, now: Instant | None = None) -> Any:
        answer = await self.inner.do(command, now)
        if isinstance(command, Find):
            return Page([_locked(job) for job in answer.jobs], answer.next)
        if isinstance(command, Get):
            return [job and _locked(job) for job in answer]
        return answer


def _locked(job: JobRecord) -> JobRecord:
    return replace(job, lock_until=NOW)


async def test_a_lock_on_a_finished_job_is_found(memory: Store) -> None:
    store = AuditedStore(LeavesLocksBehind(memory))
    await completed(store)

    with pytest.raises(AssertionError, match="is completed with lock_until"):
        await store.check()


class LosesJobs(StoreProxy):
    async def do(self, command: Any, now: Instant | None = None) -> Any:
        answer = await self.inner.do(command, now)
        if isinstance(command, Find):
            return Page(answer.jobs[1:], answer.next)
        return answer


async def test_a_lost_job_is_found(memory: Store) -> None:
    store = AuditedStore(LosesJobs(memory))
    await add(store, *new_jobs(2))

    with pytest.raises(AssertionError, match=r"is not there, its events end with waiting(.|\n)*counts"):
        await store.check()


async def test_a_claim_of_what_was_not_asked_for_is_found(memory: Store) -> None:
    store = AuditedStore(GivesOutTheSameTokenAgain(memory))
    await add(store, new_job())
    await store.claim(claim_request(token="mine"), now=NOW)

    with pytest.raises(AssertionError, match="was given out active under 'always'"):
        await store.check()


class OtherChildren(StoreProxy):
    """Answers other things about children than it should."""

    changes: dict[str, Any]

    async def do(self, command: Any, now: Instant | None = None) -> Any:
        answer = await super().do(command, now)
        return replace(answer, **self.changes) if isinstance(answer, Children) else answer


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"awaited": False}, "p waits for children, and none of them is awaited"),
        ({"counts": dict.fromkeys(CHILD_STATES, 1)}, "p counts 1 children"),
        ({"children": []}, "p counts 1 children"),
    ],
)
async def test_a_parent_that_is_wrong_about_its_children_is_found(
    memory: Store, changes: dict[str, Any], problem: str
) -> None:
    await add(memory, *new_flow(new_job("p"), new_job("a")))
    await AuditedStore(memory).check()
    wrong = OtherChildren(memory)
    wrong.changes = changes

    with pytest.raises(AssertionError, match=problem):
        await AuditedStore(wrong).check()
