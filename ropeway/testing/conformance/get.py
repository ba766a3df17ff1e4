from __future__ import annotations

from ...store.contract import Store
from ..arrange import ARRANGED, NURSERY, add, job_in
from ..factories import NOW, QUEUE, new_job, new_jobs


class TestGet:
    async def test_jobs_come_in_the_order_asked_for(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))

        found = await store.get(QUEUE, ["b", "nobody", "a", "b"])

        assert [job and job.id for job in found] == ["b", None, "a", "b"]

    async def test_nothing_asked_for_is_nothing_found(self, store: Store) -> None:
        assert await store.get(QUEUE, []) == []

    async def test_a_job_of_another_queue_is_not_found(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await store.get(QUEUE, ["a"]) == [None]

    async def test_many_jobs_are_read_in_one_call(self, store: Store) -> None:
        jobs = new_jobs(2_500)
        await store.add([jobs], now=NOW)

        found = await store.get(QUEUE, [job.id for job in jobs])

        assert [job and job.id for job in found] == [job.id for job in jobs]

    async def test_an_id_is_text_and_never_a_pattern_or_a_number(self, store: Store) -> None:
        await add(store, new_job("1"), new_job("a.b"))

        assert await store.get(QUEUE, ["01", "1.0", "a-b", "A.B", "%", "*"]) == [None] * 6


class TestQueues:
    async def test_no_queue_at_first(self, store: Store) -> None:
        assert await store.queues() == []

    async def test_a_queue_with_a_job_of_any_state_is_listed_by_name(self, store: Store) -> None:
        for state in ARRANGED:
            await job_in(state, store, queue=f"queue-of-{state}")

        assert await store.queues() == sorted([NURSERY, *(f"queue-of-{state}" for state in ARRANGED)])

    async def test_a_queue_whose_jobs_are_gone_is_not_listed(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.remove(QUEUE, ["a"], now=NOW)

        assert await store.queues() == []

    async def test_a_queue_with_settings_alone_is_listed(self, store: Store) -> None:
        await store.configure("parcels", pause=True, now=NOW)

        assert await store.queues() == ["parcels"]


class TestClock:
    async def test_it_never_runs_backwards(self, store: Store, sibling: Store) -> None:
        readings = [await handle.clock() for _ in range(20) for handle in (store, sibling)]

        assert readings == sorted(readings)

    async def test_it_counts_milliseconds(self, store: Store) -> None:
        # Between the years 2020 and 2100: neither seconds nor microseconds.
        assert 1_577_836_800_000 < await store.clock() < 4_102_444_800_000
