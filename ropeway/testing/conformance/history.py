from __future__ import annotations

from ...store.contract import Store
from ...store.values import FailedAttempt, History, JobUpdate, LogLine, StallRules
from ..arrange import active, add, claim_one
from ..factories import LOCK, NOW, QUEUE, WORKER, fail, new_job, retry


class TestHistory:
    async def test_an_unknown_job_has_none(self, store: Store) -> None:
        assert await store.history(QUEUE, "nobody") is None

    async def test_a_job_of_another_queue_has_none_here(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await store.history(QUEUE, "a") is None

    async def test_a_new_job_has_an_empty_one(self, store: Store) -> None:
        await add(store, new_job("a"))

        assert await store.history(QUEUE, "a") == History([], [])

    async def test_failed_attempts_come_oldest_first(self, store: Store) -> None:
        held = await active(store, id="a", attempts=3)
        await store.settle(QUEUE, [retry(held, reason="one", trace="t1")], now=NOW + 1)
        again = await claim_one(store, worker="worker-2", now=NOW + 2)
        await store.settle(QUEUE, [fail(again, reason="two", trace="t2")], now=NOW + 5)

        history = await store.history(QUEUE, "a")

        assert history is not None
        assert history.failures == [
            FailedAttempt(1, NOW + 1, WORKER, "one", "t1", NOW),
            FailedAttempt(2, NOW + 5, "worker-2", "two", "t2", NOW + 2),
        ]

    async def test_stalls_are_limited_by_the_job_s_options(self, store: Store) -> None:
        await add(store, new_job("a", stack_traces=1))
        for n in range(3):
            await claim_one(store, now=NOW + n * LOCK)
            await store.tick(QUEUE, StallRules(10), now=NOW + (n + 1) * LOCK)

        history = await store.history(QUEUE, "a")

        assert history is not None
        [failure] = history.failures
        assert (failure.attempt, failure.started_at, failure.at) == (3, NOW + 2 * LOCK, NOW + 3 * LOCK)

    async def test_jobs_do_not_share_a_log(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))
        await store.update(QUEUE, [JobUpdate("a", log=("for a",)), JobUpdate("b", log=("for b",))], now=NOW)

        history = await store.history(QUEUE, "b")

        assert history == History([], [LogLine(NOW, "for b")])
