"""Retention of finished jobs, whichever move finished them."""

from __future__ import annotations

from typing import Final

from ...job.outcomes import Outcome
from ...job.retention import FOREVER, Retention
from ...job.states import State
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import BATCH, Answer, StallRules
from ..arrange import (
    active,
    add,
    claim,
    completed,
    events_of,
    failed,
    is_gone,
    job_in,
    read,
)
from ..factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    complete,
    fail,
    new_job,
    new_jobs,
)
from .cases import for_each

RULES: Final = StallRules()


async def settle(store: Store, *outcomes: Outcome, now: int = NOW) -> list[Answer]:
    return (await store.settle(QUEUE, outcomes, now=now)).answers


async def finish_kept(store: Store, state: State, *, now: int = NOW) -> str:
    """A job that is kept for ever."""
    if state == "cancelled":
        job = await job_in(state, store, remove_on_fail=False, now=now)
        return job.id
    held = await active(store, now=now)
    settled = complete(held, keep=FOREVER) if state == "completed" else fail(held, keep=FOREVER)
    await settle(store, settled, now=now)
    return held.id


async def finish_counted(store: Store, state: State, count: int, *, now: int = NOW) -> str:
    """A job of which only so many are kept."""
    if state == "cancelled":
        job = await job_in(state, store, remove_on_fail=count, now=now)
        return job.id
    held = await active(store, now=now)
    keep = Retention(count=count)
    await settle(store, complete(held, keep=keep) if state == "completed" else fail(held, keep=keep), now=now)
    return held.id


class TestKeptForEver:
    @for_each("state", ["completed", "failed", "cancelled"])
    async def test_counts_of_others_neither_count_nor_remove_it(self, store: Store, state: State) -> None:
        kept, counted = [], []
        for number in range(6):
            kept.append(await finish_kept(store, state, now=NOW + 2 * number))
            counted.append(await finish_counted(store, state, 2, now=NOW + 2 * number + 1))

        found = [job.id for job in (await store.find(Find(QUEUE, (state,)))).jobs]

        assert found == [*kept[:5], counted[4], kept[5], counted[5]]
        assert (await store.count(QUEUE))[state] == 8

    async def test_no_age_removes_it(self, store: Store) -> None:
        kept = await finish_kept(store, "completed")
        held = await active(store)
        await settle(store, complete(held, keep=Retention(age=SECOND)))

        ticked = await store.tick(QUEUE, RULES, now=NOW + 100 * 365 * DAY)

        assert (ticked.removed, ticked.next_at) == (1, None)
        assert (await read(store, kept)).expires_at is None

    async def test_a_job_that_only_a_count_removes_is_not_kept_for_ever(self, store: Store) -> None:
        first = await finish_counted(store, "completed", 5)
        await finish_counted(store, "completed", 1, now=NOW + 1)

        assert await is_gone(store, first)

    async def test_a_job_given_up_is_kept_too(self, store: Store) -> None:
        held = await active(store, remove_on_fail=False)
        await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)
        for number in range(3):
            await finish_counted(store, "failed", 1, now=NOW + LOCK + number)

        assert (await read(store, held.id)).state == "failed"
        assert (await store.count(QUEUE))["failed"] == 2

    async def test_pages_have_both_kinds_in_the_order_of_finishing(self, store: Store) -> None:
        jobs = []
        for number in range(9):
            if number % 3:
                jobs.append(await finish_counted(store, "completed", 9, now=NOW + number))
            else:
                jobs.append(await finish_kept(store, "completed", now=NOW + number))
        for newest_first in (False, True):
            found: list[str] = []
            after = None
            while True:
                page = await store.find(Find(QUEUE, ("completed",), limit=2, after=after, newest_first=newest_first))
                found += [job.id for job in page.jobs]
                after = page.next
                if after is None:
                    break
            assert found == (jobs[::-1] if newest_first else jobs)

    async def test_it_goes_by_hand(self, store: Store) -> None:
        kept = [await finish_kept(store, "completed", now=NOW + number) for number in range(4)]
        counted = await finish_counted(store, "completed", 3, now=NOW + 1)
        await store.remove(QUEUE, [kept[3]], now=NOW + 9)
        await store.retry(QUEUE, [kept[2]], now=NOW + 9)

        cleaned = await store.clean(QUEUE, "completed", now=NOW + 9)

        assert cleaned.ids == [kept[0], kept[1], counted]
        assert (await store.count(QUEUE))["completed"] == 0
        await store.cancel(QUEUE, [kept[2]], now=NOW + 9)
        newer = [await finish_counted(store, "completed", 2, now=NOW + 10 + number) for number in range(3)]
        assert [job.id for job in (await store.find(Find(QUEUE, ("completed",)))).jobs] == newer[1:]


class TestSettleRetention:
    @for_each("keep", [Retention(count=0), Retention(age=0)])
    async def test_a_job_that_is_not_kept_goes_in_the_same_step(self, store: Store, keep: Retention) -> None:
        done, broken = [await active(store), await active(store)]

        answers = await settle(store, complete(done, '"sent"', keep=keep), fail(broken, keep=keep))

        assert [answer.verdict for answer in answers] == ["done", "done"]
        assert await is_gone(store, done.id)
        assert await is_gone(store, broken.id)
        assert await store.history(QUEUE, broken.id) is None

    async def test_its_end_and_its_removal_are_announced(self, store: Store) -> None:
        held = await active(store)

        await settle(store, complete(held, '"sent"', keep=Retention(count=0)))

        assert await events_of(store, "complete") == [(held.id, {"result": "sent"})]
        assert await events_of(store, "remove") == [(held.id, {"prev": "completed"})]

    async def test_the_oldest_beyond_the_count_go(self, store: Store) -> None:
        jobs = [await completed(store, now=NOW + n) for n in range(3)]
        held = await active(store)

        await settle(store, complete(held, keep=Retention(count=2)), now=NOW + 3)

        assert [await is_gone(store, job.id) for job in jobs] == [True, True, False]
        assert (await store.count(QUEUE))["completed"] == 2
        assert [id for id, _ in await events_of(store, "remove")] == [job.id for job in jobs[:2]]

    async def test_a_count_holds_within_one_state(self, store: Store) -> None:
        done, broken = await completed(store), await failed(store)
        held = await active(store)

        await settle(store, fail(held, keep=Retention(count=1)), now=NOW + 1)

        assert await is_gone(store, broken.id)
        assert not await is_gone(store, done.id)

    async def test_a_count_holds_within_one_queue(self, store: Store) -> None:
        other = await completed(store, queue="parcels")
        held = await active(store)

        await settle(store, complete(held, keep=Retention(count=1)))

        assert not await is_gone(store, other.id, "parcels")

    async def test_one_call_removes_a_batch_at_most(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 51)], now=NOW)
        *most, last = await claim(store, BATCH + 51)
        await settle(store, *(complete(job) for job in most))

        await settle(store, complete(last, keep=Retention(count=1)), now=NOW + 1)

        assert (await store.count(QUEUE))["completed"] == 51
        assert not await is_gone(store, last.id)

    async def test_a_job_kept_for_ever_stays(self, store: Store) -> None:
        held = await active(store)
        await settle(store, complete(held, keep=Retention()))

        await store.tick(QUEUE, StallRules(), now=NOW + 36_500 * DAY)

        assert not await is_gone(store, held.id)


class TestTickRetention:
    async def test_a_finished_job_goes_when_its_time_is_over(self, store: Store) -> None:
        held = await active(store)
        await store.settle(QUEUE, [complete(held, keep=Retention(age=SECOND))], now=NOW)

        early = await store.tick(QUEUE, RULES, now=NOW + SECOND - 1)
        late = await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert (early.removed, late.removed) == (0, 1)
        assert await is_gone(store, held.id)
        assert await store.history(QUEUE, held.id) is None
        assert await events_of(store, "remove") == [(held.id, {"prev": "completed"})]

    @for_each("state", ["failed", "cancelled"])
    async def test_failed_and_cancelled_jobs_stay_for_a_week(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert (await store.tick(QUEUE, RULES, now=NOW + 7 * DAY - 1)).removed == 0
        assert (await store.tick(QUEUE, RULES, now=NOW + 7 * DAY)).removed == 1
        assert await is_gone(store, job.id)

    async def test_one_tick_removes_a_batch_at_most(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 1)], now=NOW)
        jobs = await claim(store, BATCH + 1)
        await store.settle(QUEUE, [complete(job) for job in jobs], now=NOW)

        first = await store.tick(QUEUE, RULES, now=NOW + DAY)
        second = await store.tick(QUEUE, RULES, now=NOW + DAY)

        assert (first.removed, first.more) == (BATCH, True)
        assert (second.removed, second.more) == (1, False)

    async def test_jobs_that_are_not_finished_never_go(self, store: Store) -> None:
        await add(store, new_job(), new_job(delay=DAY))

        assert (await store.tick(QUEUE, RULES, now=NOW + 1_000 * DAY)).removed == 0
