from __future__ import annotations

from collections.abc import Callable

from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...job.retention import Retention
from ...job.states import STATES
from ...store.contract import Store
from ...store.values import JobChange, StallRules
from ..arrange import ARRANGED, active, add, claim, job_in
from ..factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    claim_request,
    complete,
    fail,
    hand_back,
    new_job,
    new_jobs,
    postpone,
    retry,
)


class TestCount:
    async def test_every_state_is_in_it(self, store: Store) -> None:
        assert await store.count(QUEUE) == dict.fromkeys(STATES, 0)

    async def test_every_state_is_counted(self, store: Store) -> None:
        for state in reversed(ARRANGED):
            await job_in(state, store)

        assert await store.count(QUEUE) == {state: int(state in ARRANGED) for state in STATES}

    async def test_queues_are_counted_apart(self, store: Store) -> None:
        await add(store, *new_jobs(2), *new_jobs(3, queue="parcels"))

        assert (await store.count(QUEUE))["waiting"] == 2
        assert (await store.count("parcels"))["waiting"] == 3

    async def test_jobs_that_were_not_created_are_not_counted(self, store: Store) -> None:
        await add(store, new_job("a"))

        await store.add([[new_job("a")], [new_job("b"), new_job("a", data="2")]], now=NOW)

        assert (await store.count(QUEUE))["waiting"] == 1

    async def test_after_a_long_life_the_counters_equal_a_recount(self, store: Store) -> None:
        """The auditor recounts when the test has ended."""
        await add(store, *new_jobs(20, attempts=3), *new_jobs(5, delay=DAY))
        jobs = await claim(store, 12)
        moves: list[Callable[[JobRecord], Outcome]] = [complete, retry, fail, postpone, hand_back, complete]
        outcomes = [move(job) for move, job in zip(moves, jobs[:6], strict=True)]
        await store.settle(QUEUE, outcomes, claim_request(2), now=NOW)
        await store.settle(QUEUE, [complete(jobs[6], keep=Retention(count=1))], now=NOW + 1)
        await store.cancel(QUEUE, [jobs[7].id, jobs[7].id, jobs[0].id], now=NOW + 1)
        await store.remove(QUEUE, [jobs[8].id], force=True, now=NOW + 1)
        await store.change(QUEUE, [JobChange(jobs[1].id, priority=3)], now=NOW + 1)
        await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)
        await store.retry(QUEUE, [jobs[2].id, jobs[7].id], now=NOW + LOCK)
        await store.tick(QUEUE, StallRules(), now=NOW + DAY)
        await store.clean(QUEUE, "failed", limit=1, now=NOW + DAY)
        await active(store, priority=-1, now=NOW + DAY)
        await store.tick(QUEUE, StallRules(), now=NOW + 2 * DAY)

        assert sum((await store.count(QUEUE)).values()) > 0


class TestCountWaiting:
    async def test_waiting_jobs_are_counted_by_priority(self, store: Store) -> None:
        await add(store, *new_jobs(3), *new_jobs(2, priority=5), *new_jobs(1, priority=-(2**21)))
        await add(store, *new_jobs(1, priority=5, lifo=True), *new_jobs(1, priority=2**21))

        assert await store.count_waiting(QUEUE, [5, 0, 1, -(2**21), 2**21, 4]) == [3, 3, 0, 1, 1, 0]

    async def test_only_those_that_wait_in_that_queue(self, store: Store) -> None:
        await active(store, priority=1)
        await add(store, new_job(priority=1, delay=DAY), new_job(priority=1, queue="parcels"), new_job(priority=1))

        assert await store.count_waiting(QUEUE, [1]) == [1]
        assert await store.count_waiting("nowhere", [1]) == [0]
        assert await store.count_waiting(QUEUE, []) == []

    async def test_names_make_no_difference(self, store: Store) -> None:
        await add(store, new_job(name="send", priority=1), new_job(name="print", priority=1), new_job(name="print"))

        assert await store.count_waiting(QUEUE, [1, 0]) == [2, 1]

    async def test_it_follows_what_happens(self, store: Store) -> None:
        [first, second, _] = await add(store, *new_jobs(3, priority=1))
        await store.change(QUEUE, [JobChange(first.id, priority=7)], now=NOW)
        await store.cancel(QUEUE, [second.id], now=NOW)
        [held] = await claim(store)
        before = await store.count_waiting(QUEUE, [1, 7])
        await store.settle(QUEUE, [hand_back(held)], now=NOW)

        assert before == [0, 1]
        assert await store.count_waiting(QUEUE, [1, 7]) == [1, 1]

    async def test_many_priorities(self, store: Store) -> None:
        await add(store, *(new_job(priority=priority) for priority in range(200)))

        assert await store.count_waiting(QUEUE, range(-400, 400)) == [0] * 400 + [1] * 200 + [0] * 200
