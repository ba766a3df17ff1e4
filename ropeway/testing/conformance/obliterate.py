from __future__ import annotations

from ...store.contract import Store
from ...store.values import BATCH, Settings
from ..arrange import ARRANGED, active, add, claim, completed, entries, is_gone, job_in, snapshot
from ..factories import NOW, QUEUE, new_job, new_jobs, revoked_lock


class TestObliterate:
    async def test_nothing_of_the_queue_remains(self, store: Store) -> None:
        jobs = [await job_in(state, store) for state in ARRANGED if state not in ("active", "waiting")]
        jobs += await add(store, *new_jobs(2))
        await store.configure(QUEUE, max_active=5, pause_names=["send"], now=NOW)

        cleaned = await store.obliterate(QUEUE, now=NOW)

        assert (sorted(cleaned.ids), cleaned.more) == (sorted(job.id for job in jobs), False)
        assert await snapshot(store) == ([], dict.fromkeys(await store.count(QUEUE), 0))
        assert await store.settings(QUEUE) == Settings()
        assert await store.metrics(QUEUE) == []
        assert await entries(store) == []
        assert QUEUE not in await store.queues()

    async def test_active_jobs_stand_in_the_way(self, store: Store) -> None:
        held = await active(store)
        done = await completed(store)
        await add(store, new_job())

        cleaned = await store.obliterate(QUEUE, now=NOW)

        assert (cleaned.ids, cleaned.active) == ([], 1)
        assert not await is_gone(store, held.id)
        assert not await is_gone(store, done.id)

    async def test_it_pauses_the_queue_even_so(self, store: Store) -> None:
        await active(store)
        await add(store, new_job())

        await store.obliterate(QUEUE, now=NOW)

        assert (await store.settings(QUEUE)).paused
        assert await claim(store, 10) == []

    async def test_active_jobs_go_by_force_and_their_locks_are_revoked(self, store: Store) -> None:
        held = await active(store)
        start = (await store.revoked(QUEUE)).cursor

        cleaned = await store.obliterate(QUEUE, force=True, now=NOW)

        assert cleaned.ids == [held.id]
        assert (await store.revoked(QUEUE, start)).locks == [revoked_lock(held, "removed")]

    async def test_a_large_queue_goes_a_batch_at_a_time(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 1)], now=NOW)

        first = await store.obliterate(QUEUE, now=NOW)
        counted = await store.count(QUEUE)
        paused = (await store.settings(QUEUE)).paused
        second = await store.obliterate(QUEUE, now=NOW)

        assert (len(first.ids), first.more, counted["waiting"], paused) == (BATCH, True, 1, True)
        assert (len(second.ids), second.more) == (1, False)

    async def test_the_queue_can_begin_anew(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.obliterate(QUEUE, now=NOW)

        await add(store, new_job("a"))

        assert [job.id for job in await claim(store, 10)] == ["a"]

    async def test_another_queue_is_left_alone(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))
        await add(store, new_job("a"))

        await store.obliterate(QUEUE, now=NOW)

        assert not await is_gone(store, "a", "parcels")
        assert await store.queues() == ["parcels"]

    async def test_an_unknown_queue_is_gone_already(self, store: Store) -> None:
        cleaned = await store.obliterate("parcels", now=NOW)

        assert (cleaned.ids, cleaned.more, cleaned.active) == ([], False, 0)
        assert await store.queues() == []
