from __future__ import annotations

from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer, JobChange
from ..arrange import add, claim, delayed, entries, events_of, job_in, read, snapshot
from ..factories import DAY, NOW, QUEUE, SECOND, new_job
from .cases import for_each

OPEN_BUT_NOT_ACTIVE: tuple[State, ...] = ("waiting", "delayed")
FINISHED: tuple[State, ...] = ("completed", "failed", "cancelled")


class TestChange:
    @for_each("state", OPEN_BUT_NOT_ACTIVE)
    async def test_a_job_that_does_not_run_gets_another_priority(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert await store.change(QUEUE, [JobChange(job.id, priority=-5)], now=NOW) == [Answer("done", state)]

        changed = await read(store, job.id)
        assert (changed.priority, changed.order, changed.due_at) == (-5, job.order, job.due_at)

    @for_each("state", ["active", *FINISHED])
    async def test_a_job_that_runs_or_has_run_keeps_its_place(self, store: Store, state: State) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        answers = await store.change(QUEUE, [JobChange(job.id, priority=5), JobChange(job.id, lifo=True)], now=NOW)

        assert answers == [Answer("refused", state)] * 2
        assert await snapshot(store) == before

    async def test_a_job_goes_to_the_head_and_back(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"), new_job("c"))

        await store.change(QUEUE, [JobChange("b", lifo=True), JobChange("c", lifo=True)], now=NOW)
        await store.change(QUEUE, [JobChange("c", lifo=False)], now=NOW)

        assert [job.id for job in await claim(store, 3)] == ["b", "a", "c"]

    async def test_the_same_place_again_is_the_same_place(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("l", lifo=True))
        before = await snapshot(store)

        await store.change(QUEUE, [JobChange("a", lifo=False), JobChange("l", lifo=True)], now=NOW)

        assert await snapshot(store) == before

    async def test_a_delay_begins_anew(self, store: Store) -> None:
        job = await delayed(store)

        assert await store.change(QUEUE, [JobChange(job.id, delay=SECOND)], now=NOW + 5) == [Answer("done", "delayed")]

        assert (await read(store, job.id)).due_at == NOW + 5 + SECOND

    async def test_a_delay_can_be_an_instant(self, store: Store) -> None:
        job = await delayed(store)

        await store.change(QUEUE, [JobChange(job.id, due_at=NOW + 7)], now=NOW)

        assert (await read(store, job.id)).due_at == NOW + 7
        assert [given.id for given in await claim(store, now=NOW + 7)] == [job.id]

    async def test_a_changed_delay_counts_for_the_next_claim(self, store: Store) -> None:
        await add(store, new_job("a", delay=DAY), new_job("b", delay=SECOND))

        await store.change(QUEUE, [JobChange("a", delay=0), JobChange("b", delay=DAY)], now=NOW)

        assert [job.id for job in await claim(store, 5, now=NOW + SECOND)] == ["a"]

    @for_each("state", ["waiting", "active", *FINISHED])
    async def test_only_a_delayed_job_has_a_delay_to_change(self, store: Store, state: State) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        answers = await store.change(
            QUEUE, [JobChange(job.id, delay=SECOND), JobChange(job.id, due_at=NOW + 1)], now=NOW
        )

        assert answers == [Answer("refused", state)] * 2
        assert await snapshot(store) == before

    @for_each("state", ["waiting", "delayed", "active"])
    async def test_a_job_that_is_not_finished_gets_other_data(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert await store.change(QUEUE, [JobChange(job.id, data="[2]")], now=NOW) == [Answer("done", state)]

        changed = await read(store, job.id)
        assert (changed.data, changed.state, changed.token) == ("[2]", state, job.token)

    @for_each("state", FINISHED)
    async def test_a_finished_job_keeps_its_data(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert await store.change(QUEUE, [JobChange(job.id, data="[2]")], now=NOW) == [Answer("refused", state)]
        assert await read(store, job.id) == job

    async def test_an_edit_happens_whole_or_not_at_all(self, store: Store) -> None:
        await add(store, new_job("a"))
        before = await snapshot(store)

        answers = await store.change(QUEUE, [JobChange("a", priority=3, data="[2]", delay=SECOND)], now=NOW)

        assert answers == [Answer("refused", "waiting")]
        assert await snapshot(store) == before

    async def test_all_parts_of_an_edit_happen(self, store: Store) -> None:
        job = await delayed(store)

        await store.change(QUEUE, [JobChange(job.id, 3, True, SECOND, None, "[2]")], now=NOW)

        changed = await read(store, job.id)
        assert (changed.priority, changed.order, changed.data) == (3, -job.order, "[2]")
        assert changed.due_at == NOW + SECOND

    async def test_answers_come_in_order(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b", delay=DAY))

        answers = await store.change(
            QUEUE,
            [
                JobChange("b", delay=1),
                JobChange("nobody", priority=1),
                JobChange("a", delay=1),
                JobChange("a", priority=1),
            ],
            now=NOW,
        )

        assert answers == [
            Answer("done", "delayed"),
            Answer("missing"),
            Answer("refused", "waiting"),
            Answer("done", "waiting"),
        ]

    async def test_what_changed_is_announced_but_not_the_data(self, store: Store) -> None:
        await add(store, new_job("a"))

        await store.change(QUEUE, [JobChange("a", priority=3, data='{"secret":1}')], now=NOW)

        assert await events_of(store, "changed") == [("a", {"priority": 3, "data": True})]

    async def test_a_changed_delay_is_announced_by_when_it_ends(self, store: Store) -> None:
        job = await delayed(store)

        await store.change(QUEUE, [JobChange(job.id, delay=SECOND)], now=NOW)

        assert await events_of(store, "changed") == [(job.id, {"due_at": NOW + SECOND})]

    async def test_a_refused_edit_announces_nothing(self, store: Store) -> None:
        await add(store, new_job("a"))

        await store.change(QUEUE, [JobChange("a", delay=1), JobChange("nobody", priority=1)], now=NOW)

        assert await entries(store, "changed") == []

    @for_each("state", FINISHED)
    async def test_a_finished_job_refuses_even_an_edit_of_nothing(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert await store.change(QUEUE, [JobChange(job.id)], now=NOW) == [Answer("refused", state)]

    @for_each("state", ["waiting", "delayed", "active"])
    async def test_an_edit_of_nothing_changes_and_announces_nothing(self, store: Store, state: State) -> None:
        job = await job_in(state, store)
        before = await snapshot(store)

        assert await store.change(QUEUE, [JobChange(job.id)], now=NOW) == [Answer("done", state)]

        assert await snapshot(store) == before
        assert await entries(store, "changed") == []

    async def test_an_edit_of_nothing_is_no_part_of_what_others_announce(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))

        await store.change(QUEUE, [JobChange("a"), JobChange("b", priority=1)], now=NOW)

        assert await events_of(store, "changed") == [("b", {"priority": 1})]
