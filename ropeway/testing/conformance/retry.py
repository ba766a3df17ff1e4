from __future__ import annotations

from ...job.marks import Mark, Marking, Notice
from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer, JobUpdate, StallRules
from ..arrange import active, cancelled, claim_one, completed, events_of, failed, job_in, read, snapshot
from ..factories import LOCK, NOW, QUEUE, complete, fail
from .cases import for_each


class TestRetryByHand:
    @for_each("state", ["completed", "failed", "cancelled"])
    async def test_a_finished_job_waits_again(self, store: Store, state: State) -> None:
        before = await job_in(state, store)

        answers = await store.retry(QUEUE, [before.id], now=NOW + 5)

        job = await read(store, before.id)
        assert answers == [Answer("done", state)]
        assert job.state == "waiting"
        assert (job.result, job.reason, job.progress) == (None, None, None)
        assert (job.finished_at, job.expires_at, job.token) == (None, None, None)
        assert (job.attempts_made, job.attempts_started) == (before.attempts_made, before.attempts_started)
        assert (job.created_at, job.order, job.data) == (before.created_at, before.order, before.data)

    async def test_it_forgets_the_progress(self, store: Store) -> None:
        held = await active(store)
        await store.update(QUEUE, [JobUpdate(held.id, held.token, progress="50")], now=NOW)
        await store.settle(QUEUE, [complete(held)], now=NOW)

        await store.retry(QUEUE, [held.id], now=NOW)

        assert (await read(store, held.id)).progress is None

    async def test_it_keeps_the_history(self, store: Store) -> None:
        job = await failed(store)

        await store.retry(QUEUE, [job.id], now=NOW)

        history = await store.history(QUEUE, job.id)
        assert history is not None
        assert len(history.failures) == 1

    async def test_it_can_begin_anew(self, store: Store) -> None:
        held = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
        await store.settle(QUEUE, [fail(await claim_one(store, now=NOW + LOCK))], now=NOW + LOCK)

        await store.retry(QUEUE, [held.id], reset=True, now=NOW + LOCK)

        job = await read(store, held.id)
        assert (job.attempts_made, job.attempts_started, job.stalled_count) == (0, 0, 0)

    async def test_it_grants_another_run(self, store: Store) -> None:
        job = await completed(store)
        await store.retry(QUEUE, [job.id], now=NOW)

        again = await claim_one(store)

        assert (again.id, again.attempts_started) == (job.id, 2)

    async def test_it_can_complete_a_second_time(self, store: Store) -> None:
        job = await completed(store)
        await store.retry(QUEUE, [job.id], now=NOW)

        settled = await store.settle(QUEUE, [complete(await claim_one(store), '"again"')], now=NOW + 1)

        assert settled.answers == [Answer("done", "active")]
        assert (await read(store, job.id)).result == '"again"'

    @for_each("state", ["waiting", "delayed", "active"])
    async def test_a_job_that_is_not_finished_cannot_be_retried(self, store: Store, state: State) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        assert await store.retry(QUEUE, [job.id], reset=True, now=NOW) == [Answer("refused", state)]
        assert await snapshot(store) == before

    async def test_answers_come_in_order(self, store: Store) -> None:
        done, broken, held = await completed(store), await failed(store), await active(store)

        answers = await store.retry(QUEUE, [held.id, broken.id, "nobody", done.id, done.id], now=NOW)

        assert answers == [
            Answer("refused", "active"),
            Answer("done", "failed"),
            Answer("missing"),
            Answer("done", "completed"),
            Answer("refused", "waiting"),
        ]

    async def test_a_retried_job_does_not_expire(self, store: Store) -> None:
        job = await cancelled(store)
        await store.retry(QUEUE, [job.id], now=NOW)

        assert (await store.tick(QUEUE, StallRules(), now=NOW * 2)).removed == 0

    async def test_it_is_announced(self, store: Store) -> None:
        job = await completed(store)

        await store.retry(QUEUE, [job.id], now=NOW)

        assert await events_of(store, "retry by hand") == [(job.id, {})]

    async def test_it_deletes_and_writes_marks_in_the_same_step(self, store: Store) -> None:
        held = await active(store)
        before = Marking((Mark("a", "1"), Mark("b", "1"), Mark("c", "1")))
        await store.update(QUEUE, [JobUpdate(held.id, held.token, marking=before)], now=NOW)
        await store.settle(QUEUE, [fail(held)], now=NOW)

        marking = Marking((Mark("b", "2"), Mark("d", "2")), ("a", "b", "missing"), (Notice("phase-started"),))
        await store.retry(QUEUE, [held.id], marking=marking, now=NOW + 5)

        expected = (Mark("b", "2", NOW + 5), Mark("c", "1", NOW), Mark("d", "2", NOW + 5))
        assert (await read(store, held.id)).marks == expected
        assert (await claim_one(store, now=NOW + 5)).marks == expected
        assert await events_of(store, "phase-started") == []

    async def test_it_marks_jobs_that_had_no_marks(self, store: Store) -> None:
        jobs = [await completed(store), await failed(store)]

        await store.retry(QUEUE, [job.id for job in jobs], marking=Marking((Mark("a", "1"),)), now=NOW)

        for _ in jobs:
            held = await claim_one(store)
            assert held.marks == (Mark("a", "1", NOW),)
            assert (await read(store, held.id)).marks == held.marks

    async def test_it_writes_large_marks(self, store: Store) -> None:
        job = await completed(store)
        large = tuple(Mark(f"mark-{number}", f'"{"é" * 3_000}"') for number in range(3))

        await store.retry(QUEUE, [job.id], marking=Marking(large, ("missing",)), now=NOW)

        assert (await claim_one(store)).marks == tuple(Mark(mark.name, mark.value, NOW) for mark in large)

    async def test_a_job_that_is_refused_gets_no_marks(self, store: Store) -> None:
        held = await active(store)

        await store.retry(QUEUE, [held.id, "nobody"], marking=Marking((Mark("a", "1"),)), now=NOW)

        assert (await read(store, held.id)).marks == ()
