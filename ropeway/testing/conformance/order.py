"""Claim order: by priority, then first in first out, or last in first out with `lifo`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import JobChange, JobUpdate, StallRules
from ..arrange import active, add, add_one, claim, completed, is_gone, read
from ..factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    hand_back,
    new_job,
    new_jobs,
    postpone,
    retry,
)
from .cases import for_each


def ids(jobs: list[JobRecord]) -> list[str]:
    return [job.id for job in jobs]


EMPTIED: Final[dict[str, Callable[[Store], Awaitable[object]]]] = {
    "claim": lambda store: claim(store, 2),
    "claim of names": lambda store: claim(store, 2, names=("send",)),
    "remove": lambda store: store.remove(QUEUE, ["a", "b"], now=NOW),
    "cancel": lambda store: store.cancel(QUEUE, ["a", "b"], now=NOW),
    "change": lambda store: store.change(QUEUE, [JobChange("a", priority=5), JobChange("b", priority=5)], now=NOW),
    "clean": lambda store: store.clean(QUEUE, "waiting", now=NOW),
    "obliterate": lambda store: store.obliterate(QUEUE, now=NOW),
}
"""Whatever takes jobs `a` and `b` out of the way of others."""


class TestClaimOrder:
    async def test_first_in_first_out(self, store: Store) -> None:
        jobs = await add(store, *new_jobs(5))

        assert ids(await claim(store, 2)) + ids(await claim(store, 3)) == ids(jobs)

    async def test_a_lower_priority_goes_first(self, store: Store) -> None:
        await add(store, new_job("none"), new_job("late", priority=9), new_job("soon", priority=-1))

        assert ids(await claim(store, 3)) == ["soon", "none", "late"]

    async def test_the_extremes_of_priority_are_in_order(self, store: Store) -> None:
        await add(store, new_job("last", priority=2**21), new_job("first", priority=-(2**21)), new_job("mid"))

        assert ids(await claim(store, 3)) == ["first", "mid", "last"]

    async def test_jobs_of_one_priority_are_first_in_first_out(self, store: Store) -> None:
        await add(store, new_job("a", priority=3), new_job("x"), new_job("b", priority=3))

        assert ids(await claim(store, 3)) == ["x", "a", "b"]

    async def test_lifo_jobs_go_first_and_the_newest_of_them_before_all(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("l1", lifo=True), new_job("b"), new_job("l2", lifo=True))

        assert ids(await claim(store, 4)) == ["l2", "l1", "a", "b"]

    async def test_lifo_stays_within_its_priority(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b", priority=1), new_job("l", priority=1, lifo=True))

        assert ids(await claim(store, 3)) == ["a", "l", "b"]

    async def test_a_promoted_job_stands_where_it_was_added(self, store: Store) -> None:
        await add(store, new_job("first", delay=SECOND), new_job("second"))

        assert ids(await claim(store, 2, now=NOW + SECOND)) == ["first", "second"]

    async def test_a_promoted_job_does_not_overtake_older_ones(self, store: Store) -> None:
        await add(store, new_job("first"), new_job("second", delay=SECOND), new_job("third"))

        assert ids(await claim(store, 3, now=NOW + SECOND)) == ["first", "second", "third"]

    async def test_a_job_promoted_by_hand_stands_where_it_was_added(self, store: Store) -> None:
        await add(store, new_job("first", delay=DAY), new_job("second"))
        await store.promote(QUEUE, ["first"], now=NOW)

        assert ids(await claim(store, 2)) == ["first", "second"]

    async def test_jobs_due_at_the_same_instant_keep_their_order(self, store: Store) -> None:
        jobs = await add(store, *new_jobs(20, delay=SECOND))

        assert ids(await claim(store, 20, now=NOW + SECOND)) == ids(jobs)

    @for_each("sent_back", [retry, postpone])
    @for_each("lifo", [False, True])
    async def test_a_job_retried_or_postponed_at_once_goes_behind_those_of_its_priority(
        self, store: Store, sent_back: Callable[[JobRecord], Outcome], lifo: bool
    ) -> None:
        first = await active(store, lifo=lifo)
        await add(store, new_job("second"), new_job("late", priority=1))
        await store.settle(QUEUE, [sent_back(first)], now=NOW)
        await add(store, new_job("newer"))

        assert ids(await claim(store, 4)) == ["second", first.id, "newer", "late"]

    async def test_jobs_that_go_behind_together_keep_their_order(self, store: Store) -> None:
        await add(store, *new_jobs(3))
        held = await claim(store, 3)
        await add(store, new_job("waiting"))
        await store.settle(QUEUE, [retry(job) for job in held], now=NOW)

        assert ids(await claim(store, 4)) == ["waiting", *ids(held)]

    async def test_a_failing_job_does_not_keep_the_others_waiting(self, store: Store) -> None:
        await add(store, *new_jobs(3))
        [job] = await claim(store)
        started = [job.id]
        for _ in range(5):
            settled = await store.settle(QUEUE, [retry(job)], claim_request(), now=NOW)
            assert settled.claimed is not None
            [job] = settled.claimed.jobs
            started.append(job.id)

        assert started[3:] == started[:3]
        assert len({*started}) == 3

    async def test_a_job_that_went_behind_keeps_its_new_place(self, store: Store) -> None:
        first = await active(store, lifo=True)
        await add(store, new_job("second"))
        await store.settle(QUEUE, [retry(first)], now=NOW)
        await add(store, new_job("newer"))
        for held in await claim(store, 2):
            await store.settle(QUEUE, [hand_back(held)], now=NOW)

        assert ids(await claim(store, 3)) == ["second", first.id, "newer"]

    async def test_a_job_that_went_behind_keeps_all_that_is_known_of_it(self, store: Store) -> None:
        held = await active(store, data='"a letter"', priority=-3, attempts=9)
        await add(store, *new_jobs(2, priority=-3))
        change = JobUpdate(held.id, held.token, progress="50", log=("stamped",))
        await store.update(QUEUE, [change], now=NOW)
        await store.settle(QUEUE, [retry(held, reason="no ink")], now=NOW)

        job = await read(store, held.id)
        history = await store.history(QUEUE, held.id)

        assert (job.data, job.priority, job.progress, job.created_at) == ('"a letter"', -3, "50", NOW)
        assert (job.state, job.attempts_made, job.reason, job.token) == ("waiting", 1, "no ink", held.token)
        assert history is not None
        assert ([each.reason for each in history.failures], [line.text for line in history.log]) == (
            ["no ink"],
            ["stamped"],
        )

    async def test_a_job_that_went_behind_can_be_moved_and_removed(self, store: Store) -> None:
        held = await active(store)
        await add(store, new_job("second"))
        await store.settle(QUEUE, [retry(held)], now=NOW)
        await store.change(QUEUE, [JobChange(held.id, lifo=True)], now=NOW)
        assert ids((await store.find(Find(QUEUE, ("waiting",)))).jobs) == [held.id, "second"]

        await store.remove(QUEUE, [held.id], now=NOW)

        assert ids(await claim(store, 2)) == ["second"]
        assert await is_gone(store, held.id)

    async def test_a_job_retried_after_a_delay_keeps_its_place(self, store: Store) -> None:
        first = await active(store)
        second = await add_one(store)
        await store.settle(QUEUE, [retry(first, SECOND)], now=NOW)

        assert ids(await claim(store, 2, now=NOW + SECOND)) == [first.id, second.id]

    async def test_a_job_handed_back_keeps_its_place(self, store: Store) -> None:
        first = await active(store)
        second = await add_one(store)
        await store.settle(QUEUE, [hand_back(first)], now=NOW)

        assert ids(await claim(store, 2)) == [first.id, second.id]

    async def test_a_stalled_job_keeps_its_place(self, store: Store) -> None:
        first = await active(store)
        second = await add_one(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

        assert ids(await claim(store, 2, now=NOW + LOCK)) == [first.id, second.id]

    async def test_a_job_retried_by_hand_keeps_its_place(self, store: Store) -> None:
        first = await completed(store)
        second = await add_one(store)
        await store.retry(QUEUE, [first.id], now=NOW)

        assert ids(await claim(store, 2)) == [first.id, second.id]

    async def test_a_changed_priority_counts_at_once(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))
        await store.change(QUEUE, [JobChange("b", priority=-1)], now=NOW)

        assert ids(await claim(store, 2)) == ["b", "a"]

    @for_each("way", EMPTIED)
    async def test_a_job_is_claimed_first_when_those_before_it_are_gone(self, store: Store, way: str) -> None:
        await add(store, new_job("other", name="print", priority=1))
        for id in ("a", "b"):
            await add(store, new_job(id))
        await EMPTIED[way](store)

        await add(store, new_job("c"))

        assert ids(await claim(store, 1)) == ["c"]

    async def test_a_job_is_claimed_before_less_urgent_ones_of_its_name(self, store: Store) -> None:
        await add(store, new_job("a"))
        await add(store, new_job("late", priority=9))
        await claim(store, 1)

        await add(store, new_job("b"))

        assert ids(await claim(store, 2)) == ["b", "late"]

    async def test_order_survives_another_handle(self, store: Store, sibling: Store) -> None:
        await add(store, new_job("a"))
        await add(sibling, new_job("b"))
        await add(store, new_job("c"))

        assert ids(await claim(sibling, 3)) == ["a", "b", "c"]
