from __future__ import annotations

from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer, JobUpdate
from ..arrange import active, add, claim, events_of, is_gone, job_in, read, snapshot
from ..factories import NOW, QUEUE, new_job, new_jobs, revoked_lock
from .cases import for_each


class TestRemove:
    @for_each("state", ["waiting", "delayed", "completed", "failed", "cancelled"])
    async def test_everything_about_a_job_goes(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        answers = await store.remove(QUEUE, [job.id], now=NOW)

        assert answers == [Answer("done", state)]
        assert await is_gone(store, job.id)
        assert await store.history(QUEUE, job.id) is None
        assert sum((await store.count(QUEUE)).values()) == 0

    async def test_an_active_job_stays(self, store: Store) -> None:
        held = await active(store)
        before = await snapshot(store)

        assert await store.remove(QUEUE, [held.id], now=NOW) == [Answer("refused", "active")]
        assert await snapshot(store) == before

    async def test_an_active_job_goes_by_force_and_its_lock_is_revoked(self, store: Store) -> None:
        held = await active(store)
        start = (await store.revoked(QUEUE)).cursor

        answers = await store.remove(QUEUE, [held.id], force=True, now=NOW)

        assert answers == [Answer("done", "active")]
        assert await is_gone(store, held.id)
        assert (await store.revoked(QUEUE, start)).locks == [revoked_lock(held, "removed")]

    async def test_a_removed_job_is_never_claimed(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))
        await store.remove(QUEUE, ["a"], now=NOW)

        assert [job.id for job in await claim(store, 10)] == ["b"]

    async def test_a_job_with_the_same_id_begins_without_a_past(self, store: Store) -> None:
        held = await active(store, id="a")
        await store.update(QUEUE, [JobUpdate("a", held.token, progress="1", log=("hello",))], now=NOW)
        await store.remove(QUEUE, ["a"], force=True, now=NOW)

        await add(store, new_job("a"))

        job, history = await read(store, "a"), await store.history(QUEUE, "a")
        assert (job.attempts_started, job.progress, job.token) == (0, None, None)
        assert history is not None
        assert (history.failures, history.log, history.dropped_log_lines) == ([], [], 0)

    async def test_answers_come_in_order(self, store: Store) -> None:
        held = await active(store)
        await add(store, new_job("a"))

        answers = await store.remove(QUEUE, ["a", held.id, "nobody", "a"], now=NOW)

        assert answers == [
            Answer("done", "waiting"),
            Answer("refused", "active"),
            Answer("missing"),
            Answer("missing"),
        ]

    async def test_a_job_of_another_queue_is_missing(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await store.remove(QUEUE, ["a"], now=NOW) == [Answer("missing")]
        assert not await is_gone(store, "a", "parcels")

    async def test_it_is_announced_with_the_state_before(self, store: Store) -> None:
        done = await job_in("completed", store)
        await add(store, new_job("a"))

        await store.remove(QUEUE, ["a", done.id], now=NOW)

        assert sorted(await events_of(store, "remove"), key=lambda event: event[0]) == sorted(
            [("a", {"prev": "waiting"}), (done.id, {"prev": "completed"})], key=lambda event: event[0]
        )

    async def test_many_jobs_are_removed_in_one_call(self, store: Store) -> None:
        jobs = new_jobs(1_500)
        await store.add([jobs], now=NOW)

        assert await store.remove(QUEUE, [job.id for job in jobs], now=NOW) == [Answer("done", "waiting")] * 1_500
        assert sum((await store.count(QUEUE)).values()) == 0
