from __future__ import annotations

from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import Metric, StallRules
from ..arrange import active, add, cancelled, claim_one, completed, failed
from ..factories import LOCK, MINUTE, NOW, QUEUE, complete, hand_back, new_job, new_jobs, retry


class TestMetrics:
    async def test_a_queue_without_a_past_has_none(self, store: Store) -> None:
        assert await store.metrics(QUEUE) == []

    async def test_jobs_are_counted_in_the_minute_of_their_move(self, store: Store) -> None:
        await add(store, *new_jobs(2), now=NOW)
        await add(store, new_job(), now=NOW + MINUTE - 1)
        await add(store, new_job(), now=NOW + 3 * MINUTE)

        assert await store.metrics(QUEUE) == [Metric(NOW, added=3), Metric(NOW + 3 * MINUTE, added=1)]

    async def test_every_kind_of_end_is_counted(self, store: Store) -> None:
        await completed(store)
        await failed(store)
        await cancelled(store)
        job = await cancelled(store)
        await store.remove(QUEUE, [job.id], now=NOW)

        assert await store.metrics(QUEUE) == [Metric(NOW, added=4, completed=1, failed=1, cancelled=2, removed=1)]

    async def test_a_retry_is_counted_and_a_postponement_is_not(self, store: Store) -> None:
        job = await active(store, attempts=5)
        await store.settle(QUEUE, [retry(job)], now=NOW)
        await store.settle(QUEUE, [hand_back(await claim_one(store))], now=NOW)

        assert await store.metrics(QUEUE) == [Metric(NOW, added=1, retried=1)]

    async def test_a_job_given_up_has_stalled_and_failed(self, store: Store) -> None:
        await active(store)
        await store.tick(QUEUE, StallRules(1), now=NOW + LOCK)
        await claim_one(store, now=NOW + LOCK)
        await store.tick(QUEUE, StallRules(1), now=NOW + MINUTE)

        assert await store.metrics(QUEUE) == [
            Metric(NOW, added=1, stalled=1),
            Metric(NOW + MINUTE, failed=1, stalled=1),
        ]

    async def test_what_retention_and_cleaning_remove_is_counted(self, store: Store) -> None:
        job = await active(store)
        await store.settle(QUEUE, [complete(job, keep=Retention(count=0))], now=NOW)
        await completed(store)
        await store.clean(QUEUE, "completed", now=NOW)

        assert await store.metrics(QUEUE) == [Metric(NOW, added=2, completed=2, removed=2)]

    async def test_a_repeated_or_refused_settle_is_not_counted(self, store: Store) -> None:
        job = await active(store)
        for _ in range(2):
            await store.settle(QUEUE, [complete(job)], now=NOW)
        await store.settle(QUEUE, [complete(job, token="other")], now=NOW)

        assert await store.metrics(QUEUE) == [Metric(NOW, added=1, completed=1)]

    async def test_they_can_begin_at_an_instant(self, store: Store) -> None:
        for n in range(3):
            await add(store, new_job(), now=NOW + n * MINUTE)

        found = await store.metrics(QUEUE, since=NOW + MINUTE)

        assert [metric.minute for metric in found] == [NOW + MINUTE, NOW + 2 * MINUTE]

    async def test_they_come_oldest_first(self, store: Store) -> None:
        for n in (2, 0, 1):
            await add(store, new_job(), now=NOW + n * MINUTE)

        minutes = [metric.minute for metric in await store.metrics(QUEUE)]

        assert minutes == sorted(minutes)

    async def test_a_minute_that_others_followed_still_counts(self, store: Store) -> None:
        for n in (0, 1, 0, 2, 1, 0):
            await add(store, new_job(), now=NOW + n * MINUTE)

        assert [metric.added for metric in await store.metrics(QUEUE)] == [3, 2, 1]

    async def test_queues_are_counted_apart(self, store: Store) -> None:
        await add(store, new_job(), new_job(queue="parcels"))

        assert await store.metrics(QUEUE) == [Metric(NOW, added=1)]
