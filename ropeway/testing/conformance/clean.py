from __future__ import annotations

import pytest

from ...errors import InvalidOption
from ...job.states import State
from ...store.contract import Store
from ...store.values import BATCH
from ..arrange import active, add, cancelled, completed, entries, events_of, is_gone, job_in, snapshot
from ..factories import DAY, MINUTE, NOW, QUEUE, new_job, new_jobs
from .cases import for_each


class TestClean:
    @for_each("state", ["waiting", "delayed", "completed", "failed", "cancelled"])
    async def test_jobs_of_the_state_go_and_others_stay(self, store: Store, state: State) -> None:
        other = await job_in("completed" if state == "failed" else "failed", store)
        job = await job_in(state, store)

        cleaned = await store.clean(QUEUE, state, now=NOW)

        assert (cleaned.ids, cleaned.more) == ([job.id], False)
        assert await is_gone(store, job.id)
        assert not await is_gone(store, other.id)

    async def test_the_age_of_a_finished_job_begins_when_it_finished(self, store: Store) -> None:
        old = await completed(store, now=NOW)
        young = await completed(store, now=NOW + 1)

        cleaned = await store.clean(QUEUE, "completed", older_than=MINUTE, now=NOW + MINUTE)

        assert cleaned.ids == [old.id]
        assert not await is_gone(store, young.id)

    async def test_the_age_of_another_job_begins_when_it_was_added(self, store: Store) -> None:
        await add(store, new_job("old", delay=DAY), now=NOW)
        await add(store, new_job("young", delay=DAY), now=NOW + 1)

        assert (await store.clean(QUEUE, "delayed", older_than=MINUTE, now=NOW + MINUTE)).ids == ["old"]

    async def test_the_oldest_go_first(self, store: Store) -> None:
        jobs = [await cancelled(store, now=NOW + n) for n in (3, 1, 2)]

        cleaned = await store.clean(QUEUE, "cancelled", limit=2, now=NOW + MINUTE)

        assert cleaned.ids == [jobs[1].id, jobs[2].id]
        assert cleaned.more

    async def test_one_call_removes_a_batch_at_most(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 1)], now=NOW)

        first = await store.clean(QUEUE, "waiting", limit=1_000_000, now=NOW)
        second = await store.clean(QUEUE, "waiting", limit=1_000_000, now=NOW)

        assert (len(first.ids), first.more) == (BATCH, True)
        assert (len(second.ids), second.more) == (1, False)

    async def test_younger_jobs_are_no_reason_to_call_again(self, store: Store) -> None:
        await completed(store, now=NOW)
        await completed(store, now=NOW + MINUTE)

        assert not (await store.clean(QUEUE, "completed", older_than=MINUTE, now=NOW + MINUTE)).more

    async def test_active_jobs_cannot_be_cleaned(self, store: Store) -> None:
        await active(store)
        before = await snapshot(store)

        with pytest.raises(InvalidOption):
            await store.clean(QUEUE, "active", now=NOW)

        assert await snapshot(store) == before

    async def test_it_is_announced_with_the_number(self, store: Store) -> None:
        jobs = [await completed(store), await completed(store)]

        await store.clean(QUEUE, "completed", now=NOW + 1)

        [entry] = await entries(store, "cleaned")
        assert (entry.detail, entry.jobs) == ({"count": 2, "state": "completed"}, [])
        assert [id for id, _ in await events_of(store, "remove")] == [job.id for job in jobs]

    async def test_nothing_to_clean_announces_nothing(self, store: Store) -> None:
        cleaned = await store.clean(QUEUE, "completed", now=NOW)

        assert (cleaned.ids, cleaned.more) == ([], False)
        assert await entries(store) == []

    async def test_another_queue_is_left_alone(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert (await store.clean(QUEUE, "waiting", now=NOW)).ids == []
