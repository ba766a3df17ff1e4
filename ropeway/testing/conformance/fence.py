"""Fencing: only the holder of the current token settles, and a repeated call gets the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import Answer, StallRules
from ..arrange import (
    active,
    add,
    claim_one,
    completed,
    entries,
    events_of,
    read,
    snapshot,
)
from ..factories import (
    FOREIGN,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    complete,
    fail,
    hand_back,
    new_jobs,
    postpone,
    retry,
)
from .cases import for_each

Settling = Callable[[JobRecord], Outcome]

OUTCOMES: Final[dict[str, Settling]] = {
    "complete": lambda job: complete(job, '"sent"'),
    "retry": retry,
    "retry later": lambda job: retry(job, SECOND),
    "fail": fail,
    "postpone": postpone,
    "postpone until later": lambda job: postpone(job, SECOND),
    "hand back": hand_back,
}
every_outcome: Final = for_each("outcome", OUTCOMES.values(), ids=OUTCOMES)


async def settle(store: Store, *outcomes: Outcome, now: int = NOW) -> list[Answer]:
    return (await store.settle(QUEUE, outcomes, now=now)).answers


class TestSettleFence:
    @every_outcome
    async def test_a_stale_token_changes_nothing(self, store: Store, outcome: Settling) -> None:
        stale = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
        current = await claim_one(store, now=NOW + LOCK)

        answers = await settle(store, outcome(stale), now=NOW + LOCK)

        assert answers == [Answer("lost", "active")]
        assert await read(store, stale.id) == current

    @every_outcome
    async def test_a_foreign_token_changes_nothing(self, store: Store, outcome: Settling) -> None:
        held = await active(store)
        before = await snapshot(store)

        answers = (await store.settle(QUEUE, [_as_somebody_else(outcome(held))], now=NOW)).answers

        assert answers == [Answer("lost", "active")]
        assert await snapshot(store) == before

    @every_outcome
    async def test_a_token_is_worth_nothing_on_another_job(self, store: Store, outcome: Settling) -> None:
        await add(store, *new_jobs(2))
        first, second = await claim_one(store), await claim_one(store)
        stolen = _with_token(outcome(second), first.token or "")

        answers = await settle(store, stolen)

        assert answers == [Answer("lost", "active")]
        assert await read(store, second.id) == second

    @every_outcome
    async def test_a_stalled_job_that_waits_takes_no_late_outcome(self, store: Store, outcome: Settling) -> None:
        held = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
        before = await snapshot(store)

        answers = await settle(store, outcome(held), now=NOW + LOCK)

        assert answers == [Answer("lost", "waiting")]
        assert await snapshot(store) == before

    @every_outcome
    async def test_a_cancelled_job_takes_no_late_outcome(self, store: Store, outcome: Settling) -> None:
        held = await active(store)
        await store.cancel(QUEUE, [held.id], now=NOW)
        before = await snapshot(store)

        answers = await settle(store, outcome(held))

        assert answers == [Answer("lost", "cancelled")]
        assert await snapshot(store) == before

    @every_outcome
    async def test_a_removed_job_is_missing(self, store: Store, outcome: Settling) -> None:
        held = await active(store)
        await store.remove(QUEUE, [held.id], force=True, now=NOW)

        assert await settle(store, outcome(held)) == [Answer("missing")]

    @every_outcome
    async def test_a_job_is_missing_in_another_queue(self, store: Store, outcome: Settling) -> None:
        held = await active(store)

        answers = (await store.settle("parcels", [outcome(held)], now=NOW)).answers

        assert answers == [Answer("missing")]
        assert await read(store, held.id) == held

    async def test_a_refused_outcome_is_announced(self, store: Store) -> None:
        held = await active(store)

        await settle(store, complete(held, token=FOREIGN), hand_back(held, token=FOREIGN))

        assert await events_of(store, "lock-lost") == [
            (held.id, {"move": "complete"}),
            (held.id, {"move": "hand back"}),
        ]

    async def test_a_refused_failure_leaves_no_trace_in_the_history(self, store: Store) -> None:
        held = await active(store)

        await settle(store, fail(held, token=FOREIGN))

        history = await store.history(QUEUE, held.id)
        assert history is not None
        assert history.failures == []

    async def test_the_worker_that_came_back_cannot_overwrite_a_result(self, store: Store) -> None:
        stale = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
        current = await claim_one(store, now=NOW + LOCK)
        await settle(store, complete(current, '"second"'), now=NOW + LOCK)

        answers = await settle(store, complete(stale, '"first"'), now=NOW + LOCK)

        assert answers == [Answer("lost", "completed")]
        assert (await read(store, stale.id)).result == '"second"'

    async def test_a_token_of_an_earlier_run_is_stale_after_a_retry_by_hand(self, store: Store) -> None:
        done = await completed(store)
        await store.retry(QUEUE, [done.id], now=NOW)

        assert await settle(store, complete(done)) == [Answer("lost", "waiting")]


class TestRepeatedSettle:
    @every_outcome
    async def test_a_repeat_is_answered_as_before_and_changes_nothing(self, store: Store, outcome: Settling) -> None:
        held = await active(store, attempts=5)
        await settle(store, outcome(held))
        before = await snapshot(store), await store.history(QUEUE, held.id), await entries(store)

        answers = await settle(store, outcome(held), now=NOW + 1)

        assert [answer.verdict for answer in answers] == ["done"]
        assert (await snapshot(store), await store.history(QUEUE, held.id), await entries(store)) == before

    async def test_a_repeat_says_the_state_it_found(self, store: Store) -> None:
        held = await active(store)
        await settle(store, complete(held))

        assert await settle(store, complete(held)) == [Answer("done", "completed")]

    async def test_a_repeated_retry_is_recognised_after_its_delay_has_ended(self, store: Store) -> None:
        held = await active(store, attempts=5)
        await settle(store, retry(held, SECOND))
        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)

        answers = await settle(store, retry(held, SECOND), now=NOW + SECOND)

        assert answers == [Answer("done", "waiting")]
        assert (await read(store, held.id)).attempts_made == 1

    async def test_another_outcome_for_the_same_attempt_is_lost(self, store: Store) -> None:
        held = await active(store)
        await settle(store, complete(held))

        assert await settle(store, fail(held)) == [Answer("lost", "completed")]

    async def test_a_repeat_after_the_next_claim_is_lost(self, store: Store) -> None:
        held = await active(store, attempts=5)
        await settle(store, retry(held))
        current = await claim_one(store)

        assert await settle(store, retry(held)) == [Answer("lost", "active")]
        assert await read(store, held.id) == current

    async def test_a_repeat_of_a_job_that_was_removed_at_once_is_missing(self, store: Store) -> None:
        held = await active(store)
        outcome = complete(held, keep=Retention(count=0))
        await settle(store, outcome)

        assert await settle(store, outcome) == [Answer("missing")]

    async def test_the_same_completion_many_times_at_once_happens_once(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        answers = await asyncio.gather(
            *(settle(handle, complete(held, '"sent"')) for _ in range(10) for handle in (store, sibling))
        )

        assert {answer.verdict for [answer] in answers} == {"done"}
        assert len(await events_of(store, "complete")) == 1

    async def test_of_two_outcomes_at_once_one_is_accepted(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        [[first], [second]] = await asyncio.gather(settle(store, complete(held)), settle(sibling, fail(held)))

        assert sorted([first.verdict, second.verdict]) == ["done", "lost"]

    async def test_of_a_completion_and_a_cancel_at_once_one_is_accepted(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        [[settled], [cancelled]] = await asyncio.gather(
            settle(store, complete(held)), sibling.cancel(QUEUE, [held.id], now=NOW)
        )

        assert (settled.verdict, cancelled.verdict) in (("done", "refused"), ("lost", "done"))


def _with_token(outcome: Outcome, token: str) -> Outcome:
    return Outcome(outcome.id, token, outcome.move, outcome.result, outcome.failure, outcome.delay, outcome.keep)


def _as_somebody_else(outcome: Outcome) -> Outcome:
    return _with_token(outcome, FOREIGN)
