from __future__ import annotations

from ...job.retention import Keep
from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer
from ..arrange import active, add, cancelled, claim, events_of, is_gone, job_in, read, snapshot
from ..factories import DAY, NOW, QUEUE, SECOND, WORKER, new_job, new_jobs, revoked_lock
from .cases import for_each


class TestCancel:
    @for_each("state", ["waiting", "delayed", "active"])
    async def test_a_job_that_is_not_finished_is_cancelled_at_once(self, store: Store, state: State) -> None:
        before = await job_in(state, store)

        answers = await store.cancel(QUEUE, [before.id], "not needed", now=NOW + 5)

        job = await read(store, before.id)
        assert answers == [Answer("done", state)]
        assert (job.state, job.reason) == ("cancelled", "not needed")
        assert (job.finished_at, job.expires_at) == (NOW + 5, NOW + 5 + 7 * DAY)
        assert (job.token, job.lock_until, job.due_at) == (None, None, None)

    async def test_a_cancelled_job_is_never_claimed(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"), new_job("c", delay=SECOND))
        await store.cancel(QUEUE, ["a", "c"], now=NOW)

        assert [job.id for job in await claim(store, 10, now=NOW + DAY)] == ["b"]

    async def test_no_reason_is_no_reason(self, store: Store) -> None:
        job = await cancelled(store)
        await store.retry(QUEUE, [job.id], now=NOW)

        await store.cancel(QUEUE, [job.id], now=NOW)

        assert (await read(store, job.id)).reason is None

    async def test_a_repeat_says_that_it_is_cancelled(self, store: Store) -> None:
        job = await cancelled(store)

        answers = await store.cancel(QUEUE, [job.id], "again", now=NOW + 5)

        assert answers == [Answer("done", "cancelled")]
        assert await read(store, job.id) == job
        assert len(await events_of(store, "cancel")) == 1

    @for_each("state", ["completed", "failed"])
    async def test_a_finished_job_cannot_be_cancelled(self, store: Store, state: State) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        answers = await store.cancel(QUEUE, [job.id], now=NOW)

        assert answers == [Answer("refused", state)]
        assert await snapshot(store) == before

    async def test_the_lock_of_a_running_job_is_revoked(self, store: Store) -> None:
        held = await active(store)
        start = (await store.revoked(QUEUE)).cursor

        await store.cancel(QUEUE, [held.id], now=NOW)

        assert (await store.revoked(QUEUE, start)).locks == [revoked_lock(held)]

    async def test_the_worker_of_a_running_job_stays_known(self, store: Store) -> None:
        held = await active(store)

        await store.cancel(QUEUE, [held.id], now=NOW)

        assert (await read(store, held.id)).worker == WORKER

    async def test_a_job_that_does_not_run_revokes_nothing(self, store: Store) -> None:
        await add(store, new_job("a"))
        start = (await store.revoked(QUEUE)).cursor

        await store.cancel(QUEUE, ["a"], now=NOW)

        assert (await store.revoked(QUEUE, start)).locks == []

    async def test_answers_come_in_order(self, store: Store) -> None:
        done, held = await job_in("completed", store), await active(store)
        await add(store, new_job("a"))

        answers = await store.cancel(QUEUE, ["nobody", held.id, done.id, "a", "a"], now=NOW)

        assert answers == [
            Answer("missing"),
            Answer("done", "active"),
            Answer("refused", "completed"),
            Answer("done", "waiting"),
            Answer("done", "cancelled"),
        ]

    async def test_a_job_of_another_queue_is_missing(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))

        assert await store.cancel(QUEUE, ["a"], now=NOW) == [Answer("missing")]
        assert (await read(store, "a", "parcels")).state == "waiting"

    async def test_nothing_to_cancel_is_nothing_cancelled(self, store: Store) -> None:
        assert await store.cancel(QUEUE, [], now=NOW) == []

    async def test_it_is_announced_with_the_state_before(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b", delay=DAY))

        await store.cancel(QUEUE, ["a", "b"], "not needed", now=NOW)

        assert sorted(await events_of(store, "cancel"), key=lambda event: event[0]) == [
            ("a", {"reason": "not needed", "prev": "waiting"}),
            ("b", {"reason": "not needed", "prev": "delayed"}),
        ]

    async def test_it_is_kept_as_its_options_say(self, store: Store) -> None:
        await add(store, new_job("a", remove_on_fail=Keep(age=5)))

        await store.cancel(QUEUE, ["a"], now=NOW)

        assert (await read(store, "a")).expires_at == NOW + 5 * SECOND

    async def test_a_job_that_is_not_kept_goes_in_the_same_step(self, store: Store) -> None:
        await add(store, new_job("a", remove_on_fail=True))

        answers = await store.cancel(QUEUE, ["a"], now=NOW)

        assert answers == [Answer("done", "waiting")]
        assert await is_gone(store, "a")
        assert await events_of(store, "remove") == [("a", {"prev": "cancelled"})]

    async def test_the_oldest_beyond_the_count_go(self, store: Store) -> None:
        jobs = [await cancelled(store, now=NOW + n) for n in range(3)]
        await add(store, new_job("a", remove_on_fail=2))

        await store.cancel(QUEUE, ["a"], now=NOW + 3)

        assert [await is_gone(store, job.id) for job in jobs] == [True, True, False]

    async def test_many_jobs_are_cancelled_in_one_call(self, store: Store) -> None:
        jobs = new_jobs(1_500)
        await store.add([jobs], now=NOW)

        answers = await store.cancel(QUEUE, [job.id for job in jobs], now=NOW)

        assert answers == [Answer("done", "waiting")] * 1_500
        assert (await store.count(QUEUE))["cancelled"] == 1_500
