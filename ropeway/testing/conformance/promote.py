from __future__ import annotations

from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer
from ..arrange import add, claim, delayed, events_of, job_in, read, snapshot
from ..factories import DAY, NOW, QUEUE, new_job
from .cases import for_each


class TestPromote:
    async def test_a_delayed_job_waits_at_once(self, store: Store) -> None:
        job = await delayed(store)

        answers = await store.promote(QUEUE, [job.id], now=NOW)

        promoted = await read(store, job.id)
        assert answers == [Answer("done", "delayed")]
        assert (promoted.state, promoted.due_at, promoted.order) == ("waiting", None, job.order)
        assert [given.id for given in await claim(store)] == [job.id]

    @for_each("state", ["waiting", "active", "completed", "failed", "cancelled"])
    async def test_a_job_that_is_not_delayed_cannot_be_promoted(self, store: Store, state: State) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        assert await store.promote(QUEUE, [job.id], now=NOW) == [Answer("refused", state)]
        assert await snapshot(store) == before

    async def test_answers_come_in_order(self, store: Store) -> None:
        await add(store, new_job("a", delay=DAY), new_job("b"), new_job("c", delay=DAY))

        answers = await store.promote(QUEUE, ["c", "nobody", "b", "a", "a"], now=NOW)

        assert answers == [
            Answer("done", "delayed"),
            Answer("missing"),
            Answer("refused", "waiting"),
            Answer("done", "delayed"),
            Answer("refused", "waiting"),
        ]

    async def test_it_is_announced(self, store: Store) -> None:
        job = await delayed(store)

        await store.promote(QUEUE, [job.id], now=NOW)

        assert await events_of(store, "promote") == [(job.id, {})]
